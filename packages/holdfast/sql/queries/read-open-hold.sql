-- One hold, if it is open: as good for a very old one, because the fold begins at the last checkpoint.
SELECT w.seq AS wallet_seq, h.hold, h.amount, h.captured, h.left_over, h.expires_at, h.refunded
FROM wallets w
LEFT JOIN LATERAL (SELECT * FROM open_holds(w.ref, w.since) o WHERE o.hold = $2) h ON true
WHERE w.ref = $1
