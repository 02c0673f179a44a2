-- A page of a tenant's schedules by id, after $2.
SELECT id, template, version, paused, opened_until,
  CASE jsonb_typeof(items) WHEN 'object' THEN (items ->> 'count')::integer ELSE jsonb_array_length(items) END AS items
FROM sale_schedules WHERE tenant = $1 AND id > $2 ORDER BY id LIMIT $3
