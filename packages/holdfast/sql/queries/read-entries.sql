-- A page of a journal by seq, each entry with what it links to.
SELECT e.*, encode(e.hash, 'hex') AS hash_hex, encode(coalesce(p.hash, w.genesis), 'hex') AS prev_hex
FROM entries e
JOIN wallets w ON w.ref = e.wallet
LEFT JOIN entries p ON p.wallet = e.wallet AND p.seq = e.seq - 1
WHERE e.wallet = $1 AND e.seq >= $2 ORDER BY e.seq LIMIT $3
