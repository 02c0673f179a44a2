-- A page of a tenant's wallets by id, buckets of sales aside: after $2, beginning with $3. No id is longer than 255 characters, and none of them comes after the
-- last there is: so the upper bound leaves nothing out.
SELECT replace(ref::text, '-', '') AS ref, id, currency, metadata, opened_at, initial_limit, epoch, owner, memory, seq,
       encode(head, 'hex') AS head, at, available, reserved, credit_limit, status, due, since
FROM wallets
WHERE tenant = $1 AND NOT is_sale(ref) AND id COLLATE "C" > $2 AND id COLLATE "C" >= $3 AND id COLLATE "C" <= $3 || repeat(chr(1114111), 255)
ORDER BY id COLLATE "C" LIMIT $4
