-- Made once; a second time only tells what is there. What was made is noted for the auditor.
WITH now AS MATERIALIZED (SELECT clock_ms() AS ms), made AS (
  INSERT INTO wallets (ref, tenant, id, currency, metadata, opened_at, initial_limit, genesis, epoch, owner, seq, head, at, available, reserved,
                       credit_limit, status, due, since)
  VALUES ($1, $2, $3, $4, $5, (SELECT ms FROM now), $6, $7, next_epoch(timeline_epoch(), $8), 'postgres', 0, $7, (SELECT ms FROM now), 0, 0, $6,
          'active', 0, 0)
  ON CONFLICT (ref) DO NOTHING
  RETURNING ref
), noted AS (
  INSERT INTO audits (shard, wallet)
  SELECT shard_of(made.ref, s.shards), made.ref FROM made CROSS JOIN settings s WHERE s.shards IS NOT NULL
  ON CONFLICT DO NOTHING
)
SELECT EXISTS (SELECT FROM made) AS made, CASE WHEN NOT EXISTS (SELECT FROM made) THEN await_replicas() END
