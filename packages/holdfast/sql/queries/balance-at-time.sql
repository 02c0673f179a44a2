-- The balance after the last entry that was made at or before a time. The time of entries never goes back within a wallet, so the entry is
-- found by halving: some twenty lookups by seq for a million entries, and no index on the time.
--
-- complete: a later entry is there, so that nothing made by then can be added any more.
WITH RECURSIVE search(low, high) AS (
  SELECT 0::bigint, w.seq FROM wallets w WHERE w.ref = $1
  UNION ALL
  SELECT CASE WHEN m.at <= $2 THEN m.seq ELSE s.low END, CASE WHEN m.at <= $2 THEN s.high ELSE m.seq - 1 END
  FROM search s CROSS JOIN LATERAL (
    SELECT e.seq, e.at FROM entries e WHERE e.wallet = $1 AND e.seq >= (s.low + s.high + 1) / 2 ORDER BY e.seq LIMIT 1
  ) m
  WHERE s.low < s.high
)
SELECT w.currency, w.seq AS last_seq, s.low < w.seq AS complete, s.low AS seq, coalesce(e.at, w.opened_at) AS at,
       coalesce(e.available, 0) AS available, coalesce(e.reserved, 0) AS reserved, encode(coalesce(e.hash, w.genesis), 'hex') AS head
FROM wallets w
JOIN search s ON s.low = s.high
LEFT JOIN LATERAL (SELECT * FROM entries x WHERE x.wallet = $1 AND x.seq >= s.low ORDER BY x.seq LIMIT 1) e ON e.seq = s.low
WHERE w.ref = $1
