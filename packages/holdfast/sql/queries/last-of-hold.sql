-- The last entry about a hold in a stretch of its wallet's journal, refunds aside. After the one that closes it there is none.
SELECT e.seq, e.at, e.kind, e.hold_amount, e.hold_captured, e.hold_left, e.hold_expires_at, e.hold_refunded
FROM entries e
WHERE e.wallet = $1 AND e.seq >= $3 AND e.seq < $4 AND e.hold = $2 AND e.of_seq IS NULL
ORDER BY e.seq DESC LIMIT 1
