-- Does the journal still have what was acknowledged? Names the witnesses that are missing. Those of epochs up to the floor are past.
--
-- An entry is asked for as the first from its seq on: that can only be looked up in the primary key. With `seq = …` a plan made while the journal
-- was empty goes by the index over keys, and reads all entries of the wallet for each witness: 4 million for one that has 90,000.
SELECT least_epoch() AS floor, s.epoch_floor AS settled, s.stopped_at, s.stopped_because,
       (SELECT array_agg(o.n::integer)
        FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bytea[]) WITH ORDINALITY AS o(wallet, epoch, seq, hash, n)
        WHERE o.epoch > s.epoch_floor
          AND (SELECT e.hash FROM entries e WHERE e.wallet = o.wallet AND e.seq >= o.seq ORDER BY e.seq LIMIT 1) IS DISTINCT FROM o.hash
          AND NOT (o.seq = 0 AND EXISTS (SELECT FROM wallets w WHERE w.ref = o.wallet AND w.genesis = o.hash))) AS missing
FROM settings s
