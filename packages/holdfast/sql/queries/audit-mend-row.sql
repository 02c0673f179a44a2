-- Puts a wallet's row back to what its journal leads to, under a raised epoch: what was decided on the row as it stood is never accepted.
-- Only if it stands as it was found, and the journal ends where it was found to. $16 is the epoch of its last entry. An epoch that nobody can have
-- raised is left for one that is far above any that was, because how far they had come is not written down anywhere else.
UPDATE wallets w
SET seq = $7, head = $8, at = $9, available = $10, reserved = $11, credit_limit = $12, status = $13::wallet_status, due = $14, since = $15,
    epoch = next_epoch(greatest(timeline_epoch(), CASE WHEN w.epoch < 4503599627370496 THEN w.epoch ELSE $16::bigint + 10000000000 END, $16), $17),
    owner = 'postgres'
WHERE w.ref = $1 AND w.epoch = $2 AND w.seq = $3 AND w.head = $4 AND w.available = $5 AND w.reserved = $6
  AND NOT EXISTS (SELECT FROM entries e WHERE e.wallet = $1 AND e.seq > $7)
RETURNING w.epoch
