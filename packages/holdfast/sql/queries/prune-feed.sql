-- What is older than $1 ms, of the oldest $2 rows. The last row stays: positions are compared with it.
DELETE FROM feed WHERE position IN (
  SELECT f.position FROM (SELECT o.position, o.at FROM feed o ORDER BY o.position LIMIT $2) AS f
  WHERE f.at < clock_ms() - $1::bigint AND f.position < (SELECT h.position FROM feed_head h)
)
