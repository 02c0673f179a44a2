-- A new life for a wallet's state: whatever was decided under an older epoch and is not here yet never will be.
UPDATE wallets
SET epoch = greatest(epoch + 1, $2, timeline_epoch() + 1), owner = $3, memory = memory OR $4
WHERE ref = $1
RETURNING epoch, memory, seq, encode(head, 'hex') AS head, at, available, reserved, credit_limit, status, due, since, clock_ms() AS clock
