-- Things go on, unless it was stopped anew meanwhile: under epochs above all that are known, and a thousand raises above that, the longest that there are, for what nobody knows of any more.
-- Numbers that must never come twice skip what may have been given out since the backup.
UPDATE settings
SET epoch_floor = greatest(least_epoch(), $1, stopped_epoch, (SELECT max(w.epoch) FROM wallets w)) + 10000000000,
    stopped_at = NULL, stopped_because = NULL, stopped_epoch = 0
WHERE stopped_at = $2
RETURNING epoch_floor AS floor,
          setval('lock_tokens', nextval('lock_tokens') + 1000000000) AS token,
          setval('transfers_attempt_seq', nextval('transfers_attempt_seq') + 1000000000) AS attempt,
          setval('payments_attempt_seq', nextval('payments_attempt_seq') + 1000000000) AS payment,
          setval('webhook_deliveries_id_seq', nextval('webhook_deliveries_id_seq') + 1000000000) AS delivery
