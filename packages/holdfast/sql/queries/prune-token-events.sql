-- Of an owner's tokens that expired more than $2 ms ago, $3 rows at most: how long others keep theirs is for them to say. The time in a subquery
-- of its own, as in prune-idempotency-keys.sql.
WITH old AS (
  SELECT id FROM token_events WHERE owner = $1 AND expires_at < (SELECT clock_ms()) - $2::bigint
  ORDER BY expires_at LIMIT $3 FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM token_events e USING old o WHERE e.id = o.id RETURNING 1
)
SELECT count(*)::integer AS gone FROM gone
