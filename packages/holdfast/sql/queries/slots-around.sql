-- Of the slots of a schedule those around a time: two that begin before it or then, and $4 that begin after it, in their order. Two index scans,
-- however short slots are and however many there were.
SELECT l.starts_at, l.ends_at, l.sale, l.version, l.opened_at, s.ready, s.terms
FROM (
  (SELECT * FROM sale_slots WHERE tenant = $1 AND schedule = $2 AND starts_at <= $3 ORDER BY starts_at DESC LIMIT 2)
  UNION ALL
  (SELECT * FROM sale_slots WHERE tenant = $1 AND schedule = $2 AND starts_at > $3 ORDER BY starts_at LIMIT $4)
) l JOIN sales s ON s.tenant = l.tenant AND s.id = l.sale
ORDER BY l.starts_at
