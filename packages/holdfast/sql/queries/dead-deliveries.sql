SELECT id, event_id, event, body, created_at, tries, reason, dead_at FROM webhook_deliveries
WHERE webhook = $1 AND dead_at IS NOT NULL AND id > $2 ORDER BY id LIMIT $3
