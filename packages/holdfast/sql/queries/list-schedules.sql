-- A page of a tenant's schedules by id, after $2.
SELECT id, template, version, paused, opened_until, item_count AS items
FROM sale_schedules WHERE tenant = $1 AND id > $2 ORDER BY id LIMIT $3
