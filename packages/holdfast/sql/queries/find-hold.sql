-- What can be told about a hold from indexes alone: how it was made, what was refunded of it, and that it was closed under a key that
-- follows from its own: by its expiry, or as a session by its end. One row if there is the wallet; `made_seq` is null where there is no such hold.
SELECT w.currency, w.epoch, w.seq AS wallet_seq, encode(w.head, 'hex') AS head, m.seq AS made_seq, m.at AS made_at, m.metadata,
       (SELECT x.seq FROM entries x
        WHERE x.wallet = $1 AND x.key = ANY (ARRAY['~expire:' || $2, '~end:' || $2]) AND x.kind IN ('expire', 'settle')) AS closed_seq,
       coalesce((SELECT max(r.hold_refunded) FROM entries r WHERE r.wallet = $1 AND r.hold = $2 AND r.of_seq IS NOT NULL), 0) AS refunded
FROM wallets w
LEFT JOIN entries m ON m.wallet = $1 AND m.key = $2::text AND m.kind = 'hold'
WHERE w.ref = $1
