-- How buckets of sales ($1) stand, all at one time: what is on its way from one to another is in neither of them.
SELECT replace(w.ref::text, '-', '') AS ref, w.available + w.reserved AS unsold, w.status, w.since > 0 AS running,
       EXISTS (SELECT FROM transfers t WHERE t.source = w.ref) AS moving
FROM wallets w WHERE w.ref = ANY ($1::uuid[])
