SELECT c.*, greatest(1, c.expires_at - clock_ms()) AS keep_left_ms FROM complete_idempotency_key($1, $2, $3, $4, $5, $6, $7) c
