-- What the journal says about entries that were refused. A statement of its own, so that it sees who won the race. An entry is asked for as the
-- first from its seq on: see prove-standing.sql. One that is there is a yes.
SELECT e.n::integer AS n, w.epoch, w.owner, w.seq, w.epoch > t.floor AS current,
       encode(w.head, 'hex') AS head, w.available, w.reserved, t.clock, there.hash AS hash_there,
       CASE WHEN there.hash IS NOT NULL THEN (SELECT await_replicas()) END,
       (SELECT x.seq FROM entries x WHERE x.wallet = e.wallet AND x.key = e.key) AS key_seq
FROM unnest($1::uuid[], $2::bigint[], $3::text[]) WITH ORDINALITY AS e(wallet, seq, key, n)
CROSS JOIN (SELECT timeline_epoch() AS floor, clock_ms() AS clock) AS t
LEFT JOIN wallets w ON w.ref = e.wallet
LEFT JOIN LATERAL (
  SELECT encode(x.hash, 'hex') AS hash FROM entries x WHERE x.wallet = e.wallet AND x.seq >= e.seq ORDER BY x.seq LIMIT 1
) AS there ON true
ORDER BY e.n
