-- Rows of the feed after a position and up to another, of some tenants, with all that they are about: at most $4 rows, and no further one
-- once $5 entries are read. $6: only what is about this wallet, of the first of the tenants; the rows themselves come in any case.
-- What happens in sales is wanted of the tenants $7 alone: who follows wallets need not read of every checkout. What audits find there is for all.
-- $8: only what is about this sale, of the first of the tenants.
WITH seen AS (
  SELECT f.*, sum(f.size) OVER (ORDER BY f.position) - f.size AS before
  FROM (SELECT * FROM feed WHERE tenant = ANY ($1::text[]) AND position > $2 AND position <= $3 ORDER BY position LIMIT $4) AS f
), page AS (
  SELECT * FROM seen WHERE before < $5
), chosen AS (
  SELECT p.position, i.* FROM page p
  CROSS JOIN unnest(p.wallets, p.firsts, p.lasts, p.notices) WITH ORDINALITY AS i(wallet, first, last, notice, n)
  WHERE (is_sale(i.wallet) IS NOT TRUE OR p.tenant = ANY ($7::text[]) OR i.notice ->> 'event' = 'audit.finding')
    AND ($6::text IS NULL OR i.wallet = (
      SELECT w.ref FROM wallets w WHERE w.tenant = ($1::text[])[1] AND w.id COLLATE "C" = $6 AND NOT is_sale(w.ref)))
    AND ($8::text IS NULL OR i.wallet IN (
      SELECT w.ref FROM wallets w WHERE w.tenant = ($1::text[])[1] AND w.id COLLATE "C" = $8 AND is_sale(w.ref)))
)
SELECT p.position AS feed_position, p.mark, p.tenant, p.size, p.at AS fed_at, c.n, c.first, c.notice,
       CASE WHEN is_sale(c.wallet) IS NOT TRUE THEN w.id END AS wallet_id, CASE WHEN is_sale(c.wallet) THEN w.id END AS sale_id,
       (s.terms ->> 'buckets')::integer AS buckets, e.*,
       encode(e.hash, 'hex') AS hash_hex,
       encode(coalesce(lag(e.hash) OVER (PARTITION BY p.position, c.n ORDER BY e.seq),
                       (SELECT b.hash FROM entries b WHERE b.wallet = e.wallet AND b.seq < e.seq ORDER BY b.seq DESC LIMIT 1), w.genesis), 'hex') AS prev_hex
FROM page p
LEFT JOIN chosen c ON c.position = p.position
LEFT JOIN wallets w ON w.ref = c.wallet
LEFT JOIN sales s ON is_sale(c.wallet) AND s.tenant = w.tenant AND s.id = w.id
LEFT JOIN entries e ON e.wallet = c.wallet AND e.seq BETWEEN c.first AND c.last
ORDER BY p.position, c.n, e.seq
