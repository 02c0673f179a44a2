-- The balance after an entry. Seq 0 is before the first; `seq` is null where there is no such entry.
SELECT w.currency, w.seq AS last_seq, true AS complete,
       CASE WHEN $2::bigint = 0 THEN 0 ELSE e.seq END AS seq, coalesce(e.at, w.opened_at) AS at,
       coalesce(e.available, 0) AS available, coalesce(e.reserved, 0) AS reserved, encode(coalesce(e.hash, w.genesis), 'hex') AS head
FROM wallets w
LEFT JOIN LATERAL (SELECT * FROM entries x WHERE x.wallet = $1 AND x.seq >= $2 ORDER BY x.seq LIMIT 1) e ON e.seq = $2
WHERE w.ref = $1
