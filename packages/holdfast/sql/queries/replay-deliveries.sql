-- For another day. $2 null: all that are dead.
UPDATE webhook_deliveries SET dead_at = NULL, tries = 0, next_at = 0, created_at = clock_ms()
WHERE webhook = $1 AND dead_at IS NOT NULL AND ($2::bigint[] IS NULL OR id = ANY ($2::bigint[]))
RETURNING id
