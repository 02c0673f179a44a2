-- Entries by their keys, for replays.
SELECT k.n::integer AS n, e.*, encode(e.hash, 'hex') AS hash_hex
FROM unnest($1::uuid[], $2::text[]) WITH ORDINALITY AS k(wallet, key, n)
JOIN entries e ON e.wallet = k.wallet AND e.key = k.key
ORDER BY k.n
