-- After $4 ms it is dead.
UPDATE webhook_deliveries
SET tries = tries + 1, next_at = clock_ms() + $2::bigint, reason = $3,
    dead_at = CASE WHEN created_at < clock_ms() - $4::bigint THEN clock_ms() END
WHERE id = $1
RETURNING dead_at IS NOT NULL AS dead
