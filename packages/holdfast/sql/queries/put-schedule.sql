-- The same again changes nothing.
INSERT INTO sale_schedules (tenant, id, template, items, item_count) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (tenant, id) DO UPDATE
SET template = excluded.template, items = excluded.items, item_count = excluded.item_count, version = sale_schedules.version + 1
WHERE (sale_schedules.template, sale_schedules.items) IS DISTINCT FROM (excluded.template, excluded.items)
