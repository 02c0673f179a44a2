-- The last $3 entries of wallets whose last seq is known, oldest first, each with what it links to.
SELECT replace(r.ref::text, '-', '') AS ref, e.*, encode(e.hash, 'hex') AS hash_hex,
       encode(coalesce((SELECT p.hash FROM entries p WHERE p.wallet = e.wallet AND p.seq < e.seq ORDER BY p.seq DESC LIMIT 1),
                       (SELECT w.genesis FROM wallets w WHERE w.ref = e.wallet)), 'hex') AS prev_hex
FROM unnest($1::uuid[], $2::bigint[]) AS r(ref, seq),
     LATERAL (SELECT * FROM entries n WHERE n.wallet = r.ref AND n.seq > r.seq - $3 ORDER BY n.seq LIMIT $3) AS e
ORDER BY e.seq
