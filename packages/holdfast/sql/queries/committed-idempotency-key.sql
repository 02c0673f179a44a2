-- The row of an owner, as it is once a transaction that is about to complete it has ended.
SELECT k.*, greatest(1, k.expires_at - clock_ms()) AS keep_left_ms FROM idempotency_keys k
WHERE k.owner = $1 AND k.tenant = $2 AND k.operation = $3 AND k.key = $4 AND k.token = $5
FOR SHARE
