-- What can be told about a hold from indexes alone: how it was made, that it expired, and what was refunded of it. One row if there is the
-- wallet; `made_seq` is null where there is no such hold.
SELECT w.currency, w.epoch, w.seq AS wallet_seq, encode(w.head, 'hex') AS head, m.seq AS made_seq, m.at AS made_at, m.metadata,
       m.hold_amount AS made_amount, m.hold_expires_at AS made_expires_at, x.seq AS expired_seq,
       coalesce((SELECT max(r.hold_refunded) FROM entries r WHERE r.wallet = $1 AND r.hold = $2 AND r.of_seq IS NOT NULL), 0) AS refunded
FROM wallets w
LEFT JOIN entries m ON m.wallet = $1 AND m.key = $2 AND m.kind = 'hold'
LEFT JOIN entries x ON x.wallet = $1 AND x.key = '~expire:' || $2::text AND x.kind = 'expire'
WHERE w.ref = $1
