-- A page of a journal by seq; the entry before the page comes along, because it is what the first one links to.
SELECT e.*, encode(e.hash, 'hex') AS hash_hex
FROM entries e WHERE e.wallet = $1 AND e.seq >= $2 ORDER BY e.seq LIMIT $3
