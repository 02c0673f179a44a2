UPDATE idempotency_keys
SET lease_until = clock_ms() + $6::bigint, updated_at = clock_ms(), expires_at = clock_ms() + $7::bigint
WHERE owner = $1 AND tenant = $2 AND operation = $3 AND key = $4 AND token = $5 AND state = 'PROCESSING'
RETURNING 1 AS renewed
