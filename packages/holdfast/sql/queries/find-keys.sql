-- Entries by their keys, for replays. What an entry links to is the hash of the one before it, or what its wallet's chain began with.
-- Callers are told of what is found.
SELECT (SELECT await_replicas()), k.n::integer AS n, e.*, encode(e.hash, 'hex') AS hash_hex,
       encode(coalesce((SELECT p.hash FROM entries p WHERE p.wallet = e.wallet AND p.seq < e.seq ORDER BY p.seq DESC LIMIT 1),
                       (SELECT w.genesis FROM wallets w WHERE w.ref = e.wallet)), 'hex') AS prev_hex
FROM unnest($1::uuid[], $2::text[]) WITH ORDINALITY AS k(wallet, key, n)
JOIN entries e ON e.wallet = k.wallet AND e.key = k.key
ORDER BY k.n
