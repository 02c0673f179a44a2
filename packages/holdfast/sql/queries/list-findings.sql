-- A page of what audits have found of a tenant's wallets that begin with $3 (empty: of all, and of none in particular), behind $2, found
-- (again) at $4 or later.
SELECT f.id, w.id AS wallet, f.ref, f.shard, f.cause, f.field, f.seq, f.expected, f.found, f.action, f.first_at, f.last_at, f.times
FROM findings f
-- What stands in Redis where a wallet should may have any name.
LEFT JOIN wallets w ON w.ref = CASE WHEN f.ref ~ '^[0-9a-f]{32}$' THEN f.ref::uuid END
WHERE f.tenant = $1 AND f.id > $2 AND ($3 = '' OR starts_with(w.id, $3)) AND f.last_at >= $4
ORDER BY f.id LIMIT $5
