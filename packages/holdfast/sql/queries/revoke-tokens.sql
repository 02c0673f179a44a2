-- Of a subject, all that may still live; with $5 only that token. Which they were.
INSERT INTO token_events (owner, tenant, operation, subject, token, event, at, expires_at)
SELECT e.owner, e.tenant, e.operation, e.subject, e.token, 'revoked', clock_ms(), e.expires_at FROM token_events e
WHERE e.subject = $4 AND e.operation = $3 AND e.tenant = $2 AND e.owner = $1 AND e.event = 'issued' AND e.expires_at > clock_ms()
  AND ($5::text IS NULL OR e.token = $5)
ON CONFLICT DO NOTHING
RETURNING token
