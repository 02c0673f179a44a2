-- The entries about a hold in a stretch of its wallet's journal. There is no index for it, which every append would pay for: a stretch is
-- read by seq, and callers keep it short.
SELECT e.*, encode(e.hash, 'hex') AS hash_hex,
       encode((SELECT p.hash FROM entries p WHERE p.wallet = e.wallet AND p.seq < e.seq ORDER BY p.seq DESC LIMIT 1), 'hex') AS prev_hex
FROM entries e
WHERE e.wallet = $1 AND e.seq >= $3 AND e.seq < $4 AND e.hold = $2
ORDER BY e.seq
