-- Also when the same owner has said so before.
UPDATE idempotency_keys
SET state = 'FAILED_RETRYABLE', reason = CASE state WHEN 'PROCESSING' THEN $6 ELSE reason END, lease_until = 0, updated_at = clock_ms(),
    expires_at = clock_ms() + $7::bigint
WHERE owner = $1 AND tenant = $2 AND operation = $3 AND key = $4 AND token = $5 AND state <> 'COMPLETED'
RETURNING 1 AS failed
