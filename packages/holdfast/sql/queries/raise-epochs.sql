-- New lives for the states of wallets: whatever was decided under an older epoch and is not here yet never will be.
-- $1 wallets   $2 at least this epoch   $3 used from memory from now on?   $4–$6 epoch, seq and hash of what Redis has as acknowledged
-- $7 how far
-- `holds`: the journal has what the state in Redis knew to be in it, unless that is past.
UPDATE wallets w
SET epoch = next_epoch(greatest(w.epoch, r.epoch_min - 1, floor.epoch), r.step), owner = 'redis', memory = w.memory OR r.memory
FROM unnest($1::uuid[], $2::bigint[], $3::boolean[], $4::bigint[], $5::bigint[], $6::bytea[], $7::bigint[])
       AS r(ref, epoch_min, memory, known_epoch, known_seq, known_hash, step),
     (SELECT timeline_epoch() AS epoch OFFSET 0) AS floor
WHERE w.ref = r.ref
RETURNING replace(w.ref::text, '-', '') AS ref, w.epoch, w.memory, w.seq, encode(w.head, 'hex') AS head, w.at, w.available, w.reserved, w.credit_limit, w.status, w.due, w.since,
          clock_ms() AS clock,
          r.known_epoch <= (SELECT s.epoch_floor FROM settings s) OR (r.known_seq = 0 AND w.genesis = r.known_hash)
          OR (SELECT e.hash FROM entries e WHERE e.wallet = w.ref AND e.seq >= r.known_seq ORDER BY e.seq LIMIT 1) IS NOT DISTINCT FROM r.known_hash AS holds
