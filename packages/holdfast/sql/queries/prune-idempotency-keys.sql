-- What has expired, $1 rows at most. The time in a subquery of its own: a volatile function in its place would be asked for each row, and the
-- index could not be used.
WITH expired AS (
  SELECT owner, tenant, operation, key FROM idempotency_keys
  WHERE expires_at <= (SELECT clock_ms()) ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM idempotency_keys k USING expired e
  WHERE k.owner = e.owner AND k.tenant = e.tenant AND k.operation = e.operation AND k.key = e.key
  RETURNING 1
)
SELECT count(*)::integer AS gone FROM gone
