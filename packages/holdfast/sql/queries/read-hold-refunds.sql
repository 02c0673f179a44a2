-- Refunds of a hold's charges from a seq on: they have an index of their own, so it does not matter how much later they came.
SELECT e.*, encode(e.hash, 'hex') AS hash_hex,
       encode((SELECT p.hash FROM entries p WHERE p.wallet = e.wallet AND p.seq < e.seq ORDER BY p.seq DESC LIMIT 1), 'hex') AS prev_hex
FROM entries e
WHERE e.wallet = $1 AND e.hold = $2 AND e.of_seq IS NOT NULL AND e.seq >= $3
ORDER BY e.seq
