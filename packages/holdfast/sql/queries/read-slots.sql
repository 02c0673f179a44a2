-- Those that end after a time, the first of them first.
SELECT l.starts_at, l.ends_at, l.sale, l.version, l.options, l.opened_at, s.ready, (s.terms ->> 'buckets')::integer AS buckets
FROM sale_slots l JOIN sales s ON s.tenant = l.tenant AND s.id = l.sale
WHERE l.tenant = $1 AND l.schedule = $2 AND l.ends_at > $3
ORDER BY l.starts_at LIMIT $4
