-- A page of a shard's wallets, each compared in here with what was verified of it. Nearly all are as they were: those are only counted and
-- summed up. The others come whole, row and verified state of one moment.
--
-- $4 until when the next expiry counts as overdue   $5 a journal that was not read from the beginning since then is to be read so
-- $6 null, or the only ones that are wanted   $7 also look whether a journal goes on behind its row, where that is as it was
--
-- A wallet that is as it was takes 7 to 9 µs of Postgres where tables are in memory, and with $7 11 to 12; with $7 in a million wallets 17.
--
-- `kind`: 'page' how many there were, and the last of them · 'same' a sum of those that are as they were · 'other' one that is not
WITH page AS MATERIALIZED (
  SELECT * FROM audits WHERE shard = $1 AND wallet > $2 AND ($6::uuid[] IS NULL OR wallet = ANY ($6)) ORDER BY wallet LIMIT $3
), compared AS MATERIALIZED (
  SELECT a.wallet, w.tenant, w.currency, w.available + w.reserved AS money, a AS verified, w AS kept,
         (a.head IS NOT NULL AND a.full_at > $5 AND w.seq = a.seq AND w.head = a.head AND w.at = a.at AND w.available = a.available
          AND w.epoch BETWEEN 0 AND 4503599627370495 AND w.reserved = a.reserved AND w.credit_limit = a.credit_limit AND w.status = a.status
          AND CASE WHEN a.due = 0 THEN w.since = 0 ELSE w.since > 0 AND w.due > 0 AND w.due <= a.due AND a.due > $4 END
          AND CASE WHEN $7 THEN NOT EXISTS (SELECT FROM entries e WHERE e.wallet = a.wallet AND e.seq > a.seq) ELSE true END) IS TRUE AS same
  FROM page a LEFT JOIN wallets w ON w.ref = a.wallet
)
SELECT 'page' AS kind, (SELECT replace(wallet::text, '-', '') FROM page ORDER BY page.wallet DESC LIMIT 1) AS ref,
       NULL AS tenant, NULL AS currency, (SELECT count(*)::integer FROM page) AS wallets, NULL AS money, NULL::jsonb AS wallet, clock_ms() AS clock
UNION ALL
SELECT 'same', NULL, tenant, currency, count(*)::integer, sum(money)::text, NULL, NULL FROM compared WHERE same GROUP BY tenant, currency
UNION ALL
SELECT 'other', replace(c.wallet::text, '-', ''), c.tenant, c.currency, 1, c.money::text, jsonb_build_object(
  'genesis', encode((c.kept).genesis, 'hex'), 'openedAt', (c.kept).opened_at, 'initialLimit', (c.kept).initial_limit,
  'row', CASE WHEN (c.kept).ref IS NULL THEN NULL ELSE jsonb_build_object(
    'epoch', (c.kept).epoch, 'seq', (c.kept).seq, 'head', encode((c.kept).head, 'hex'), 'at', (c.kept).at,
    'available', (c.kept).available, 'reserved', (c.kept).reserved, 'creditLimit', (c.kept).credit_limit, 'status', (c.kept).status,
    'due', (c.kept).due, 'since', (c.kept).since) END,
  'verified', CASE WHEN (c.verified).head IS NULL THEN NULL ELSE jsonb_build_object(
    'seq', (c.verified).seq, 'head', encode((c.verified).head, 'hex'), 'epoch', (c.verified).epoch, 'at', (c.verified).at,
    'available', (c.verified).available, 'reserved', (c.verified).reserved, 'creditLimit', (c.verified).credit_limit,
    'status', (c.verified).status, 'holds', (c.verified).holds, 'fullAt', (c.verified).full_at) END,
  'last', (SELECT e.seq FROM entries e WHERE e.wallet = c.wallet ORDER BY e.seq DESC LIMIT 1)), NULL
FROM compared c WHERE NOT same
