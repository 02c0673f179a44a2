-- A new life for a wallet's state: whatever was decided under an older epoch and is not here yet never will be.
-- `holds`: the journal has what the state in Redis knew to be in it ($5 epoch, $6 seq, $7 hash), unless that is past.
UPDATE wallets
SET epoch = greatest(epoch + 1, $2, timeline_epoch() + 1), owner = $3, memory = memory OR $4
WHERE ref = $1
RETURNING epoch, memory, seq, encode(head, 'hex') AS head, at, available, reserved, credit_limit, status, due, since, clock_ms() AS clock,
          $5::bigint <= (SELECT s.epoch_floor FROM settings s) OR ($6::bigint = 0 AND genesis = $7::bytea)
          OR EXISTS (SELECT FROM entries e WHERE e.wallet = $1 AND e.seq = $6 AND e.hash = $7) AS holds
