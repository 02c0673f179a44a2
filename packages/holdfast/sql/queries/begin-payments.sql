-- Writes down what is meant. Written before, it only gets another number, and its id counts; without a wallet nothing is written.
WITH asked AS (
  SELECT t.*, w.currency, count(*) OVER (PARTITION BY t.name) = 1 AS alone
  FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::uuid[], $5::uuid[], $6::text[], $7::bigint[], $8::text[], $9::bigint[], $10::text[],
              $11::text[], $12::text[]) WITH ORDINALITY
       AS t(name, id, tenant, wallet, bucket, code, amount, take, per_buyer, prices, counter, metadata, n)
  LEFT JOIN wallets w ON w.ref = t.wallet
), made AS (
  INSERT INTO payments (name, id, tenant, wallet, bucket, code, amount, take, per_buyer, prices, counter, metadata)
  SELECT DISTINCT ON (name) name, id, tenant, wallet, bucket, code, amount, take, per_buyer, prices, counter, metadata
  FROM asked WHERE currency IS NOT NULL
  ORDER BY name, n
  ON CONFLICT (name) DO UPDATE SET attempt = DEFAULT
  RETURNING name, id, attempt
)
SELECT a.currency, replace(m.id::text, '-', '') AS id, m.attempt, a.alone AND a.id = m.id AS fresh
FROM asked a LEFT JOIN made m USING (name)
ORDER BY a.n
