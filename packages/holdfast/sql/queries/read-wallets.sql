SELECT replace(ref::text, '-', '') AS ref, id, currency, metadata, opened_at, initial_limit, epoch, owner, memory, seq,
       encode(head, 'hex') AS head, at, available, reserved, credit_limit, status, due, since
FROM wallets WHERE ref = ANY ($1::uuid[])
