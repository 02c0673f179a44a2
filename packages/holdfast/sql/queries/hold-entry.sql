-- How a hold stands: the entry that closed it, or else the last one about it. Sessions that were ended, checkouts, and holds that have expired
-- are found by the key of that; others are read from where they were made on: as far as the hold lived, not as far as the journal goes.
-- Callers are told of what is found.
SELECT (SELECT await_replicas()), e.*, encode(e.hash, 'hex') AS hash_hex,
       encode(coalesce((SELECT p.hash FROM entries p WHERE p.wallet = e.wallet AND p.seq < e.seq ORDER BY p.seq DESC LIMIT 1),
                       (SELECT w.genesis FROM wallets w WHERE w.ref = e.wallet)), 'hex') AS prev_hex
FROM entries made
LEFT JOIN LATERAL (
  SELECT x.seq FROM entries x WHERE x.wallet = $1 AND x.key IN ('~end:' || $2, '~expire:' || $2, '~purchase:' || $2, '~cancel:' || $2)
) keyed ON true
LEFT JOIN LATERAL (
  SELECT x.seq FROM entries x
  WHERE keyed.seq IS NULL AND x.wallet = $1 AND x.seq > made.seq AND x.hold = $2 AND x.kind IN ('settle', 'release', 'expire')
  ORDER BY x.seq LIMIT 1
) closing ON true
LEFT JOIN LATERAL (
  SELECT x.seq FROM entries x
  WHERE keyed.seq IS NULL AND closing.seq IS NULL AND x.wallet = $1 AND x.seq >= made.seq AND x.hold = $2
  ORDER BY x.seq DESC LIMIT 1
) last ON true
CROSS JOIN LATERAL (
  SELECT * FROM entries x WHERE x.wallet = $1 AND x.seq >= coalesce(keyed.seq, closing.seq, last.seq) ORDER BY x.seq LIMIT 1
) e
WHERE made.wallet = $1 AND made.key = $2 AND made.kind = 'hold'
