-- Open holds of wallets that run out within $1 ms and were not told of yet, those of sessions left out: a session's time is moved on by every tick.
-- Holds whose whole life is shorter than that are left out too. Each is told once: by the primary key, whoever looks at the same time.
-- Looks at $2 wallets at most, and returns at how many it did.
--
-- The bounds are read once, and the steps kept apart: a bound that is a function can't be looked up in an index, and with the steps in one
-- the whole journal is read.
WITH bounds AS MATERIALIZED (
  SELECT clock_ms() AS now, clock_ms() + $1::bigint AS near
), due AS MATERIALIZED (
  SELECT w.ref, w.since, w.seq
  FROM wallets w LEFT JOIN feed_expiring_wallets x ON x.wallet = w.ref
  WHERE w.due > 0 AND w.due <= (SELECT near FROM bounds) AND NOT is_sale(w.ref)
    AND (x.wallet IS NULL OR x.seq <> w.seq OR (x.next_at > 0 AND x.next_at <= (SELECT near FROM bounds)))
  ORDER BY w.due LIMIT $2
), holds AS MATERIALIZED (
  SELECT d.ref, h.hold, h.expires_at, h.left_over FROM due d CROSS JOIN LATERAL open_holds(d.ref, d.since) AS h
), upcoming AS MATERIALIZED (
  SELECT h.* FROM holds h CROSS JOIN bounds b
  CROSS JOIN LATERAL (SELECT e.at, e.params FROM entries e WHERE e.wallet = h.ref AND e.key = h.hold LIMIT 1) AS made
  WHERE h.expires_at > b.now AND h.expires_at <= b.near AND made.params NOT LIKE 'meter %' AND h.expires_at - made.at > $1::bigint
), told AS (
  -- Always in one order: two who look at the same time must not wait for each other.
  INSERT INTO feed_expiring (wallet, hold, expires_at) SELECT u.ref, u.hold, u.expires_at FROM upcoming u ORDER BY u.ref, u.hold
  ON CONFLICT DO NOTHING RETURNING wallet, hold, expires_at
), looked AS (
  INSERT INTO feed_expiring_wallets AS x (wallet, seq, next_at, looked_at)
  SELECT d.ref, d.seq, coalesce(min(h.expires_at) FILTER (WHERE h.expires_at > b.near), 0), b.now
  FROM due d CROSS JOIN bounds b LEFT JOIN holds h ON h.ref = d.ref
  GROUP BY d.ref, d.seq, b.now
  ORDER BY d.ref
  ON CONFLICT (wallet) DO UPDATE SET seq = excluded.seq, next_at = excluded.next_at, looked_at = excluded.looked_at
), forgotten AS (
  DELETE FROM feed_expiring f USING (
    SELECT o.wallet, o.hold, o.expires_at FROM feed_expiring o
    WHERE o.expires_at < (SELECT now - 60000 FROM bounds) LIMIT 1000 FOR UPDATE SKIP LOCKED
  ) AS old WHERE f.wallet = old.wallet AND f.hold = old.hold AND f.expires_at = old.expires_at
), left_alone AS (
  -- Near for longer than that, and nobody has let it expire: then it is looked at once more.
  DELETE FROM feed_expiring_wallets x USING (
    SELECT o.wallet FROM feed_expiring_wallets o
    WHERE o.looked_at < (SELECT now - 2 * $1::bigint - 60000 FROM bounds) AND o.wallet NOT IN (SELECT ref FROM due)
    LIMIT 1000 FOR UPDATE SKIP LOCKED
  ) AS old WHERE x.wallet = old.wallet
), noted AS (
  INSERT INTO feed_inbox (wallets, firsts, lasts, notice)
  SELECT ARRAY[u.ref], '{0}', '{0}',
         jsonb_build_object('event', 'hold.expiring', 'hold', u.hold, 'expiresAt', u.expires_at, 'left', u.left_over)
  FROM upcoming u JOIN told t ON t.wallet = u.ref AND t.hold = u.hold AND t.expires_at = u.expires_at
  ORDER BY u.expires_at
)
SELECT count(*)::integer AS looked FROM due
