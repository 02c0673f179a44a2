-- 0: whoever is at work on it. It is settled or released, and the journals of wallet and sale say so.
DELETE FROM payments p
USING unnest($1::uuid[], $2::bigint[]) AS e(id, attempt)
WHERE p.id = e.id AND (e.attempt = 0 OR e.attempt = p.attempt)
