-- What `append` does with a single entry that fits; its parameters are the same. No row: it does not fit, and `append` finds out why. That it
-- writes the wallets itself, and so has a lock on them before it looks at anything, the settings among it, is what `start_feed` rests on.
WITH moved AS (
  UPDATE wallets w
  SET seq = ($2::bigint[])[1][5], head = ($3::bytea[])[1][2], at = ($2::bigint[])[1][6],
      available = ($2::bigint[])[1][7], reserved = ($2::bigint[])[1][8],
      credit_limit = coalesce(($2::bigint[])[1][12], w.credit_limit),
      status = coalesce(($4::text[])[1]::wallet_status, w.status),
      due = ($2::bigint[])[1][9], since = ($2::bigint[])[1][10], appended_after = w.seq
  WHERE w.ref = ($1::uuid[])[1] AND w.epoch = ($2::bigint[])[1][1] AND w.epoch > timeline_epoch()
    AND w.seq = ($2::bigint[])[1][2] AND w.head = ($3::bytea[])[1][1]
    AND w.available = ($2::bigint[])[1][3] AND w.reserved = ($2::bigint[])[1][4]
    AND (($2::bigint[])[1][11] = 0 OR clock_ms() <= ($2::bigint[])[1][11])
  RETURNING w.ref, w.epoch, w.seq
), noted AS (
  INSERT INTO feed_inbox (wallets, firsts, lasts)
  SELECT $1::uuid[], ARRAY[moved.seq], ARRAY[moved.seq] FROM moved CROSS JOIN settings s WHERE s.feed_until > clock_ms()
)
INSERT INTO entries (
  wallet, epoch, seq, at, amount, available_delta, reserved_delta, available, reserved,
  hold_amount, hold_captured, hold_left, hold_expires_at, hold_refunded, of_seq, of_refunded,
  hash, kind, key, hold, counter, params, metadata
)
SELECT moved.ref, moved.epoch, ($5::bigint[])[1][2], ($5::bigint[])[1][3],
       ($5::bigint[])[1][4], ($5::bigint[])[1][5], ($5::bigint[])[1][6], ($5::bigint[])[1][7], ($5::bigint[])[1][8],
       ($5::bigint[])[1][9], ($5::bigint[])[1][10], ($5::bigint[])[1][11], ($5::bigint[])[1][12], ($5::bigint[])[1][13],
       ($5::bigint[])[1][14], ($5::bigint[])[1][15],
       ($6::bytea[])[1], ($7::text[])[1][1]::entry_kind, ($7::text[])[1][2], ($7::text[])[1][3], ($7::text[])[1][4], ($7::text[])[1][5],
       ($7::text[])[1][6]
FROM moved
RETURNING clock_ms() AS clock
