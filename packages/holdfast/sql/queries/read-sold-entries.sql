-- Checkouts and purchases of a bucket of a sale, in order: from a seq on, up to another, so many at most. `sold`: what was bought.
SELECT seq, hash, key, CASE WHEN kind = 'settle' THEN metadata END AS sold
FROM entries WHERE wallet = $1 AND seq >= $2 AND seq <= $3 AND kind IN ('hold', 'extend', 'settle')
ORDER BY seq LIMIT $4
