-- The Postgres path owns the wallet before it decides: an epoch of Redis is raised, by $4, unless $2, and one of its own is joined, unless $3.
UPDATE wallets
SET epoch = CASE WHEN NOT $3::boolean AND owner = 'postgres' AND epoch > timeline_epoch() THEN epoch
                 ELSE next_epoch(greatest(epoch, timeline_epoch()), $4) END,
    owner = 'postgres'
WHERE ref = $1 AND NOT memory AND (NOT $2::boolean OR owner = 'postgres' AND epoch > timeline_epoch())
RETURNING epoch, memory, seq, encode(head, 'hex') AS head, at, available, reserved, credit_limit, status, due, since, clock_ms() AS clock
