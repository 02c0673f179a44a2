-- `items`: how many there are, listed or by a template; null: whoever opens a slot makes them.
SELECT number, template, version, paused, opened_until, clock_ms() AS now, item_count AS items
FROM sale_schedules WHERE tenant = $1 AND id = $2
