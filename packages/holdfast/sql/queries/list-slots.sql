-- Those that begin before a time, the last of them first.
SELECT l.starts_at, l.ends_at, l.sale, l.version, l.opened_at, s.ready
FROM sale_slots l JOIN sales s ON s.tenant = l.tenant AND s.id = l.sale
WHERE l.tenant = $1 AND l.schedule = $2 AND l.starts_at < $3
ORDER BY l.starts_at DESC LIMIT $4
