-- In order, so that two servers that note the same keys never wait for each other in a circle.
WITH used AS MATERIALIZED (SELECT id FROM api_keys WHERE id = ANY ($1::text[]) ORDER BY id FOR NO KEY UPDATE)
UPDATE api_keys k SET last_used_at = clock_ms() FROM used WHERE k.id = used.id
