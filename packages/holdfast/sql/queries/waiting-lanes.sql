SELECT DISTINCT lane FROM webhook_deliveries WHERE webhook = $1 AND dead_at IS NULL AND lane = ANY ($2::text[])
