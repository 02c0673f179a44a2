-- All that the journal knows about a charge: what it was, what was refunded of it, and the same of the hold it came out of.
-- `closing` is read from the charge on: as far as the hold lived, not as far as the journal goes; and of a charge without a hold, which nothing
-- equals, not at all.
SELECT w.epoch, w.seq, e.kind, e.hold, -(e.available_delta + e.reserved_delta) AS charge,
       coalesce((SELECT max(r.of_refunded) FROM entries r WHERE r.wallet = $1 AND r.of_seq = $2), 0) AS refunded,
       closing.seq IS NOT NULL AS hold_closed,
       coalesce(closing.hold_captured, last.hold_captured) AS hold_charged,
       (SELECT max(r.hold_refunded) FROM entries r WHERE r.wallet = $1 AND r.hold = e.hold AND r.of_seq IS NOT NULL) AS hold_refunded
FROM wallets w
LEFT JOIN LATERAL (SELECT * FROM entries x WHERE x.wallet = $1 AND x.seq >= $2 ORDER BY x.seq LIMIT 1) e ON e.seq = $2
LEFT JOIN LATERAL (
  SELECT x.seq, x.hold_captured FROM entries x
  WHERE e.hold IS NOT NULL AND x.wallet = $1 AND x.seq >= $2 AND x.hold = e.hold AND x.kind IN ('settle', 'release', 'expire')
  ORDER BY x.seq LIMIT 1
) closing ON true
LEFT JOIN LATERAL (
  SELECT x.hold_captured FROM entries x
  WHERE e.hold IS NOT NULL AND closing.seq IS NULL AND x.wallet = $1 AND x.seq >= $2 AND x.hold = e.hold
  ORDER BY x.seq DESC LIMIT 1
) last ON true
WHERE w.ref = $1
