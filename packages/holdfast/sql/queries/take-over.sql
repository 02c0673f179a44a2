-- The Postgres path owns the wallet before it decides: an epoch of Redis is raised, by $4, unless $2, and one of its own is joined, unless $3.
-- Waits for nobody: of a row that somebody else has locked it tells nothing. What the transaction does next may take $5 ms, if that is given.
UPDATE wallets
SET epoch = CASE WHEN NOT $3::boolean AND owner = 'postgres' AND epoch > timeline_epoch() THEN epoch
                 ELSE next_epoch(greatest(epoch, timeline_epoch()), $4) END,
    owner = 'postgres'
WHERE ref = (SELECT w.ref FROM wallets w WHERE w.ref = $1 FOR NO KEY UPDATE SKIP LOCKED)
  AND NOT memory AND (NOT $2::boolean OR owner = 'postgres' AND epoch > timeline_epoch())
RETURNING epoch, memory, seq, encode(head, 'hex') AS head, at, available, reserved, credit_limit, status, due, since, clock_ms() AS clock,
          set_config('statement_timeout', coalesce($5::text, current_setting('statement_timeout')), true) AS timeout
