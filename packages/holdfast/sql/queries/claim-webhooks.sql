-- Those that are this process's. What is nobody's is taken, and what is its own is renewed when half of its time is over.
WITH taken AS (
  UPDATE webhooks SET holder = $1, lease_until = clock_ms() + $2::bigint
  WHERE id IN (
    SELECT w.id FROM webhooks w
    WHERE w.lease_until <= clock_ms() OR (w.holder = $1 AND w.lease_until <= clock_ms() + $2::bigint / 2)
    ORDER BY w.id LIMIT $3 FOR UPDATE SKIP LOCKED
  )
  RETURNING *
)
SELECT a.id, a.tenant, a.url, a.events, a.wallet_prefix, a.balance_low, a.position, a.mark, a.tries, a.failing_since,
       greatest(0, a.next_at - clock_ms()) AS pause_ms
FROM (
  SELECT * FROM taken
  UNION ALL
  SELECT * FROM webhooks w WHERE w.holder = $1 AND w.lease_until > clock_ms() AND NOT EXISTS (SELECT FROM taken t WHERE t.id = w.id)
) AS a
