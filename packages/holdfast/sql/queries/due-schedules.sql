-- Schedules of all tenants of which a slot is due within $1 ms, or was begun more than $2 ms ago and has not all of its stock: those that any
-- process can open slots of, because their items are on record, but for those of $4 and $5. At most $3, by turns: the most urgent of each
-- tenant, then the second of each, so that nobody is kept from their time by how many another tenant has.
WITH clock AS MATERIALIZED (
  SELECT clock_ms() AS now
), unfinished AS MATERIALIZED (
  SELECT l.tenant, l.schedule
  FROM clock, sales s JOIN sale_slots l ON l.tenant = s.tenant AND l.sale = s.id
  WHERE NOT s.ready AND l.ends_at > clock.now AND l.opened_at < clock.now - $2
), due AS (
  SELECT s.tenant, s.id, s.number, t.due, row_number() OVER (PARTITION BY s.tenant ORDER BY t.due) AS turn
  FROM sale_schedules s, clock, LATERAL (SELECT s.opened_until - (s.template ->> 'aheadMs')::bigint AS due) t
  WHERE s.items IS NOT NULL
    AND (NOT s.paused AND t.due < clock.now + $1 OR (s.tenant, s.id) IN (SELECT tenant, schedule FROM unfinished))
    AND (s.tenant, s.id) NOT IN (SELECT tenant, id FROM unnest($4::text[], $5::text[]) AS r(tenant, id))
)
SELECT tenant, id, number FROM due ORDER BY turn, due LIMIT $3
