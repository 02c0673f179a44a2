-- `items`: how many there are, listed or by a template; null: whoever opens a slot makes them.
SELECT template, version, paused, opened_until, clock_ms() AS now,
  CASE jsonb_typeof(items) WHEN 'object' THEN (items ->> 'count')::integer ELSE jsonb_array_length(items) END AS items
FROM sale_schedules WHERE tenant = $1 AND id = $2
