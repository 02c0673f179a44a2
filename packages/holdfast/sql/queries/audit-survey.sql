-- Wallets that the auditor was never told of, such as those of a dump that was put in by hand. A page of all wallets by ref.
WITH page AS MATERIALIZED (
  SELECT ref FROM wallets WHERE ref > $1 ORDER BY ref LIMIT $2
), noted AS (
  INSERT INTO audits (shard, wallet)
  SELECT shard_of(page.ref, s.shards), page.ref FROM page CROSS JOIN settings s
  WHERE s.shards IS NOT NULL
    AND NOT EXISTS (SELECT FROM audits a WHERE a.shard = shard_of(page.ref, s.shards) AND a.wallet = page.ref)
  ON CONFLICT DO NOTHING
)
SELECT replace((SELECT ref FROM page ORDER BY ref DESC LIMIT 1)::text, '-', '') AS last
