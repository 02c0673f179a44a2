-- Stretches of journals, as they stand there: from behind a seq up to another, at most so many of each.
SELECT k.n::integer AS n, e.*, encode(e.hash, 'hex') AS hash_hex
FROM unnest($1::uuid[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS k(wallet, after, upto, n)
CROSS JOIN LATERAL (
  SELECT * FROM entries x WHERE x.wallet = k.wallet AND x.seq > k.after AND x.seq <= k.upto ORDER BY x.seq LIMIT $4
) e
ORDER BY k.n, e.seq
