SELECT template, jsonb_array_length(items) AS items, version, paused, opened_until, clock_ms() AS now
FROM sale_schedules WHERE tenant = $1 AND id = $2
