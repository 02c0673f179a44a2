SELECT state, attempt, greatest(0, lease_until - clock_ms()) AS left_ms, response, reason
FROM idempotency_keys
WHERE owner = $1 AND tenant = $2 AND operation = $3 AND key = $4 AND expires_at > clock_ms()
