-- Does what a refusal rests on stand? One read for many refusals, all decided before it was sent.
SELECT r.n::integer AS n,
       coalesce(w.epoch = r.epoch AND w.epoch > t.floor AND w.epoch < t.floor + 1000000000, false) AS current,
       coalesce((w.seq = r.seq AND w.head = r.head) OR (r.seq = 0 AND w.genesis = r.head)
                OR EXISTS (SELECT FROM entries e WHERE e.wallet = r.wallet AND e.seq = r.seq AND e.hash = r.head), false) AS held,
       EXISTS (SELECT FROM entries e WHERE e.wallet = r.wallet AND e.key = r.key) AS seen,
       EXISTS (SELECT FROM entries e WHERE e.wallet = r.wallet AND e.key = r.hold AND e.kind = 'hold') AS hold_made,
       EXISTS (SELECT FROM entries e WHERE e.wallet = r.wallet AND e.key = '~expire:' || r.hold) AS hold_expired,
       w.epoch AS epoch
FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bytea[], $5::text[], $6::text[]) WITH ORDINALITY
     AS r(wallet, epoch, seq, head, key, hold, n)
CROSS JOIN (SELECT timeline_epoch() AS floor) AS t
LEFT JOIN wallets w ON w.ref = r.wallet
ORDER BY r.n
