-- Attempts in sales: $1 who writes, then for each its number, sale, time, kind, outcome, code, buyer, checkout and items; empty for none. What is
-- there was written before.
INSERT INTO sale_attempts (writer, n, sale, at, kind, outcome, code, buyer, checkout, items)
SELECT $1, a.n, a.sale, a.at, a.kind, a.outcome, nullif(a.code, ''), nullif(a.buyer, '')::uuid, nullif(a.checkout, ''), nullif(a.items, '')
FROM unnest($2::bigint[], $3::uuid[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[])
     AS a(n, sale, at, kind, outcome, code, buyer, checkout, items)
ON CONFLICT DO NOTHING
