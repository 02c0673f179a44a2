-- The newest first.
SELECT subject, token, event, because, at, expires_at FROM token_events
WHERE subject = $4 AND operation = $3 AND tenant = $2 AND owner = $1
ORDER BY id DESC LIMIT $5
