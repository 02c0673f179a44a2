-- Schedules of all tenants of which a slot is due within $1 ms, or lies there unfinished, the most urgent first, at most $2: those that any
-- process can open slots of, because their items are on record. A slot is at most one and a half times as long as `every`.
SELECT s.tenant, s.id
FROM sale_schedules s, LATERAL (
  SELECT (s.template ->> 'everyMs')::bigint AS every, s.opened_until - (s.template ->> 'aheadMs')::bigint AS due
) t
WHERE s.items IS NOT NULL AND NOT s.paused AND (
  t.due < clock_ms() + $1
  OR EXISTS (
    SELECT FROM sale_slots l JOIN sales o ON o.tenant = l.tenant AND o.id = l.sale
    WHERE l.tenant = s.tenant AND l.schedule = s.id AND l.starts_at > clock_ms() - 2 * t.every AND NOT o.ready
  )
)
ORDER BY t.due LIMIT $2
