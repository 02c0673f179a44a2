-- $3: how often in a row it took nothing, 0 when it did; $4: for how long it is left alone.
UPDATE webhooks
SET tries = $3, next_at = clock_ms() + $4::bigint, failing_since = CASE WHEN $3 = 0 THEN NULL ELSE coalesce(failing_since, clock_ms()) END
WHERE id = $1 AND holder = $2
RETURNING id
