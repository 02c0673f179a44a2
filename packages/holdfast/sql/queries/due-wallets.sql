-- From behind the wallet $4 on, due at $3. The index has `due` alone: those of the same time are few, and sorted as they come.
SELECT replace(w.ref::text, '-', '') AS ref, w.tenant, w.due, w.epoch FROM wallets w
WHERE w.due > 0 AND w.due <= $1 AND (w.due, w.ref) > ($3, $4) ORDER BY w.due, w.ref LIMIT $2
