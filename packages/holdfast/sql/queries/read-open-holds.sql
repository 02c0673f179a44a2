-- A page of a wallet's open holds, oldest first, and the state of the wallet that they are of: one row at least, if there is the wallet.
-- The fold reads what came since the last checkpoint. Then each open hold is looked up by its key, for when it was made: one by one,
-- because a join would read all entries of the wallet by seq, and all holds again for each of them.
WITH open AS MATERIALIZED (
  SELECT m.seq AS made_seq, m.at AS made_at, m.metadata, h.*
  FROM wallets w
  CROSS JOIN LATERAL open_holds(w.ref, w.since) h
  CROSS JOIN LATERAL (SELECT e.seq, e.at, e.metadata FROM entries e WHERE e.wallet = $1 AND e.key = h.hold OFFSET 0) m
  WHERE w.ref = $1
), page AS (
  SELECT * FROM open WHERE made_seq > $2 ORDER BY made_seq LIMIT $3
)
SELECT w.epoch, w.seq AS wallet_seq, encode(w.head, 'hex') AS head, page.*
FROM wallets w LEFT JOIN page ON true
WHERE w.ref = $1
ORDER BY page.made_seq
