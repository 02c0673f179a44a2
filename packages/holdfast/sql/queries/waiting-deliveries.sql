-- The first of each lane, if its time has come; $2: also if it has not. At most $3.
SELECT h.id, h.lane, h.event_id, h.body, h.tries
FROM (
  SELECT DISTINCT ON (d.lane) d.* FROM webhook_deliveries d WHERE d.webhook = $1 AND d.dead_at IS NULL ORDER BY d.lane, d.id
) AS h
WHERE $2 OR h.next_at <= clock_ms() ORDER BY h.next_at, h.id LIMIT $3
