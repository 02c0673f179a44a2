-- What entries did to a stock, in order: after a seq, up to another, so many at most.
SELECT seq, hash, kind, key, hold, params, metadata FROM entries WHERE wallet = $1 AND seq > $2 AND seq <= $3 ORDER BY seq LIMIT $4
