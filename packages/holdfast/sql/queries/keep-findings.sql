-- Keeps what an audit has found: JSON of $1. What was not found again for $2 ms goes, some at a time.
WITH old AS (
  DELETE FROM findings o WHERE o.id IN (
    SELECT f.id FROM findings f WHERE f.last_at < (SELECT clock_ms()) - $2::bigint ORDER BY f.last_at LIMIT 1000 FOR UPDATE SKIP LOCKED
  )
), told AS (
  -- The same thing twice in one audit, of a shard that two had one after the other: the later one counts.
  SELECT DISTINCT ON (t.tenant, t.ref, t.cause, field, seq)
    t.tenant, t.ref, t.shard, t.cause, coalesce(t.field, '') AS field, coalesce(t.seq, 0) AS seq,
    coalesce(t.expected, 'null') AS expected, coalesce(t.found, 'null') AS found, t.action
  FROM ROWS FROM (
    jsonb_to_recordset($1::jsonb)
      AS (tenant text, ref text, shard integer, cause text, field text, seq bigint, expected jsonb, found jsonb, action text)
  ) WITH ORDINALITY AS t(tenant, ref, shard, cause, field, seq, expected, found, action, n)
  ORDER BY t.tenant, t.ref, t.cause, field, seq, t.n DESC
)
INSERT INTO findings AS f (tenant, ref, shard, cause, field, seq, expected, found, action, first_at, last_at)
SELECT t.tenant, t.ref, t.shard, t.cause, t.field, t.seq, t.expected, t.found, t.action, clock_ms(), clock_ms() FROM told t
-- Always in one order: two who keep the same must not wait for each other.
ORDER BY t.tenant, t.ref, t.cause, t.field, t.seq
ON CONFLICT (tenant, ref, cause, field, seq) DO UPDATE
SET shard = excluded.shard, expected = excluded.expected, found = excluded.found, action = excluded.action,
    last_at = excluded.last_at, times = f.times + 1
