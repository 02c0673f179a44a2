-- Of tokens that expired more than $1 ms ago, $2 rows at most. The time in a subquery of its own, as in prune-idempotency-keys.sql.
WITH old AS (
  SELECT id FROM token_events WHERE expires_at < (SELECT clock_ms()) - $1::bigint ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM token_events e USING old o WHERE e.id = o.id RETURNING 1
)
SELECT count(*)::integer AS gone FROM gone
