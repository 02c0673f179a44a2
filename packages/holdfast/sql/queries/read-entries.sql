-- A page of a journal by seq, each entry with what it links to. Looked up one by one: a join reads all that the wallet ever did.
SELECT e.*, encode(e.hash, 'hex') AS hash_hex,
       encode(coalesce((SELECT p.hash FROM entries p WHERE p.wallet = e.wallet AND p.seq < e.seq ORDER BY p.seq DESC LIMIT 1),
                       (SELECT w.genesis FROM wallets w WHERE w.ref = e.wallet)), 'hex') AS prev_hex
FROM entries e
WHERE e.wallet = $1 AND e.seq >= $2 ORDER BY e.seq LIMIT $3
