-- A page of a wallet's open holds, oldest first, and the state of the wallet that they are of: one row at least, if there is the wallet.
-- The fold reads what came since the last checkpoint. Then each open hold is looked up by its key, for when it was made.
SELECT w.epoch, w.seq AS wallet_seq, encode(w.head, 'hex') AS head, p.*
FROM wallets w
LEFT JOIN LATERAL (
  SELECT m.seq AS made_seq, m.at AS made_at, m.metadata, h.hold, h.amount, h.captured, h.left_over, h.expires_at, h.refunded
  FROM open_holds(w.ref, w.since) h
  JOIN entries m ON m.wallet = $1 AND m.key = h.hold
  WHERE m.seq > $2
  ORDER BY m.seq LIMIT $3
) p ON true
WHERE w.ref = $1
ORDER BY p.made_seq
