-- What is older than $1 ms, at most $2 rows; how many those were. Two who prune at once do not wait for each other. The time in a subquery of its
-- own: a volatile function in its place would be asked for each row, and the index could not be used.
WITH old AS (
  SELECT ctid FROM sale_attempts WHERE at < (SELECT clock_ms()) - $1::bigint LIMIT $2 FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM sale_attempts WHERE ctid IN (SELECT ctid FROM old) RETURNING 1
)
SELECT count(*)::integer AS pruned FROM gone
