-- An address that takes nothing: what has waited for it for $2 ms.
UPDATE webhook_deliveries SET dead_at = clock_ms(), reason = coalesce(reason, $3)
WHERE webhook = $1 AND dead_at IS NULL AND created_at < clock_ms() - $2::bigint
RETURNING id
