-- Writes down what is meant. Written before, it only gets another number; with a wallet missing or another currency, nothing is written.
WITH asked AS (
  SELECT t.*, s.currency AS source_currency, d.currency AS target_currency,
         count(*) OVER (PARTITION BY t.source, t.key, t.target, t.amount, t.fee) = 1 AS alone
  FROM unnest($1::uuid[], $2::text[], $3::uuid[], $4::bigint[], $5::bigint[], $6::text[], $7::text[], $8::text[]) WITH ORDINALITY
       AS t(source, key, target, amount, fee, tenant, counter, metadata, n)
  LEFT JOIN wallets s ON s.ref = t.source
  LEFT JOIN wallets d ON d.ref = t.target
), made AS (
  INSERT INTO transfers (source, key, target, amount, fee, tenant, counter, metadata)
  SELECT DISTINCT ON (source, key, target, amount, fee) source, key, target, amount, fee, tenant, counter, metadata
  FROM asked WHERE source_currency = target_currency
  ORDER BY source, key, target, amount, fee, n
  ON CONFLICT (source, key, target, amount, fee) DO UPDATE SET attempt = DEFAULT
  -- A row that was just made has been changed by nobody.
  RETURNING source, key, target, amount, fee, attempt, xmax = 0 AS made
)
SELECT a.source_currency, a.target_currency, m.attempt, a.alone AND m.made AS fresh
FROM asked a LEFT JOIN made m USING (source, key, target, amount, fee)
ORDER BY a.n
