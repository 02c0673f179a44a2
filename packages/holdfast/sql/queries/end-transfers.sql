-- 0: whoever is at work on it. The transfer is finished or undone, and the journals of its wallets say so.
DELETE FROM transfers t
USING unnest($1::uuid[], $2::text[], $3::uuid[], $4::bigint[], $5::bigint[], $6::bigint[]) AS e(source, key, target, amount, fee, attempt)
WHERE t.source = e.source AND t.key = e.key AND t.target = e.target AND t.amount = e.amount AND t.fee = e.fee
  AND (e.attempt = 0 OR e.attempt = t.attempt)
