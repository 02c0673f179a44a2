-- The same again changes nothing.
INSERT INTO sale_schedules (tenant, id, template, items) VALUES ($1, $2, $3, $4)
ON CONFLICT (tenant, id) DO UPDATE SET template = excluded.template, items = excluded.items, version = sale_schedules.version + 1
WHERE (sale_schedules.template, sale_schedules.items) IS DISTINCT FROM (excluded.template, excluded.items)
