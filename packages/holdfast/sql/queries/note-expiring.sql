-- Open holds that run out within $1 ms and were not told of yet, those of sessions left out: a session's time is moved on by every tick.
-- Holds whose whole life is shorter than that are left out too. Each is told once: by the primary key, whoever looks at the same time.
WITH upcoming AS (
  SELECT w.ref, w.tenant, h.hold, h.expires_at, h.left_over
  FROM wallets w CROSS JOIN LATERAL open_holds(w.ref, w.since) AS h
  WHERE w.due > 0 AND w.due <= clock_ms() + $1::bigint AND h.expires_at > clock_ms() AND h.expires_at <= clock_ms() + $1::bigint
    AND NOT EXISTS (SELECT FROM feed_expiring x WHERE x.wallet = w.ref AND x.hold = h.hold AND x.expires_at = h.expires_at)
    AND EXISTS (
      SELECT FROM entries e WHERE e.wallet = w.ref AND e.key = h.hold AND e.params NOT LIKE 'meter %' AND h.expires_at - e.at > $1::bigint
    )
), told AS (
  INSERT INTO feed_expiring (wallet, hold, expires_at) SELECT ref, hold, expires_at FROM upcoming
  ON CONFLICT DO NOTHING RETURNING wallet, hold, expires_at
), forgotten AS (
  DELETE FROM feed_expiring WHERE expires_at < clock_ms() - 60000
)
INSERT INTO feed_inbox (wallets, firsts, lasts, notice)
SELECT ARRAY[u.ref], '{0}', '{0}',
       jsonb_build_object('event', 'hold.expiring', 'hold', u.hold, 'expiresAt', u.expires_at, 'left', u.left_over)
FROM upcoming u JOIN told t ON t.wallet = u.ref AND t.hold = u.hold AND t.expires_at = u.expires_at
ORDER BY u.expires_at
