-- All that the journal knows about a charge: what it was, what was refunded of it, and the same of the hold it came out of.
SELECT w.epoch, w.seq, e.kind, e.hold, -(e.available_delta + e.reserved_delta) AS charge,
       coalesce((SELECT max(r.of_refunded) FROM entries r WHERE r.wallet = $1 AND r.of_seq = $2), 0) AS refunded,
       h.closed AS hold_closed, h.hold_captured AS hold_charged, h.hold_refunded
FROM wallets w
LEFT JOIN entries e ON e.wallet = w.ref AND e.seq = $2
LEFT JOIN LATERAL (
  SELECT bool_or(x.kind IN ('settle', 'release', 'expire')) AS closed,
         (array_agg(x.hold_captured ORDER BY x.seq DESC))[1] AS hold_captured,
         max(coalesce(x.hold_refunded, 0)) AS hold_refunded
  FROM entries x
  WHERE e.hold IS NOT NULL AND x.wallet = $1 AND x.hold = e.hold
    AND x.seq >= (SELECT o.seq FROM entries o WHERE o.wallet = $1 AND o.key = e.hold)
) h ON true
WHERE w.ref = $1
