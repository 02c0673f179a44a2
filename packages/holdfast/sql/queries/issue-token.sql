INSERT INTO token_events (owner, tenant, operation, subject, token, event, at, expires_at)
VALUES ($1, $2, $3, $4, $5, 'issued', clock_ms(), clock_ms() + $6::bigint)
