-- Rows of the feed after a position and up to another, of some tenants, with all that they are about: at most $4 rows, and no further one
-- once $5 entries are read. $6: only what is about this wallet, of the first of the tenants; the rows themselves come in any case.
-- What happens in sales is no event of a wallet.
WITH seen AS (
  SELECT f.*, sum(f.size) OVER (ORDER BY f.position) - f.size AS before
  FROM (SELECT * FROM feed WHERE tenant = ANY ($1::text[]) AND position > $2 AND position <= $3 ORDER BY position LIMIT $4) AS f
), page AS (
  SELECT * FROM seen WHERE before < $5
), chosen AS (
  SELECT p.position, i.* FROM page p
  CROSS JOIN unnest(p.wallets, p.firsts, p.lasts, p.notices) WITH ORDINALITY AS i(wallet, first, last, notice, n)
  WHERE NOT is_sale(i.wallet) AND ($6::text IS NULL OR i.wallet = (
    SELECT w.ref FROM wallets w WHERE w.tenant = ($1::text[])[1] AND w.id COLLATE "C" = $6 AND NOT is_sale(w.ref)))
)
SELECT p.position AS feed_position, p.mark, p.tenant, p.size, p.at AS fed_at, c.n, c.first, c.notice, w.id AS wallet_id, e.*,
       encode(e.hash, 'hex') AS hash_hex,
       encode(coalesce(lag(e.hash) OVER (PARTITION BY p.position, c.n ORDER BY e.seq),
                       (SELECT b.hash FROM entries b WHERE b.wallet = e.wallet AND b.seq = e.seq - 1), w.genesis), 'hex') AS prev_hex
FROM page p
LEFT JOIN chosen c ON c.position = p.position
LEFT JOIN wallets w ON w.ref = c.wallet
LEFT JOIN entries e ON e.wallet = c.wallet AND e.seq BETWEEN c.first AND c.last
ORDER BY p.position, c.n, e.seq
