-- Schedules of all tenants of which a slot is due within $1 ms, or was within the last $2 ms, the most urgent first, at most $3: those that any
-- process can open slots of, because their items are on record.
WITH clock AS MATERIALIZED (SELECT clock_ms() AS now)
SELECT s.tenant, s.id
FROM sale_schedules s, clock, LATERAL (SELECT s.opened_until - (s.template ->> 'aheadMs')::bigint AS due) t
WHERE s.items IS NOT NULL AND NOT s.paused
  AND (t.due < clock.now + $1 OR t.due - (s.template ->> 'everyMs')::bigint > clock.now - $2)
ORDER BY t.due LIMIT $3
