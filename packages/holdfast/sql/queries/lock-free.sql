-- Those of the wallets that are there, and locks the ones that nobody else has locked.
SELECT replace(w.ref::text, '-', '') AS ref, free.ref IS NOT NULL AS free
FROM wallets w
LEFT JOIN (SELECT ref FROM wallets WHERE ref = ANY ($1::uuid[]) ORDER BY ref FOR NO KEY UPDATE SKIP LOCKED) AS free ON free.ref = w.ref
WHERE w.ref = ANY ($1::uuid[])
