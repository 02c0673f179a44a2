-- Does the journal still have what was acknowledged? Names the witnesses that are missing. Those of epochs up to the floor are past.
SELECT least_epoch() AS floor, s.epoch_floor AS settled, s.stopped_at, s.stopped_because,
       (SELECT array_agg(o.n::integer)
        FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bytea[]) WITH ORDINALITY AS o(wallet, epoch, seq, hash, n)
        WHERE o.epoch > s.epoch_floor
          AND NOT EXISTS (SELECT FROM entries e WHERE e.wallet = o.wallet AND e.seq = o.seq AND e.hash = o.hash)
          AND NOT (o.seq = 0 AND EXISTS (SELECT FROM wallets w WHERE w.ref = o.wallet AND w.genesis = o.hash))) AS missing
FROM settings s
