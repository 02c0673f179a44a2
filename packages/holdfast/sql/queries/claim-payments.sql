-- Those that have waited longest, with numbers up to $1, at most $2; not $3: who asks is at work on these. What somebody else is just setting to
-- work on is left to him: several who ask at once get others each.
WITH found AS (
  SELECT attempt FROM payments WHERE attempt <= $1::bigint AND attempt <> ALL ($3::bigint[])
  ORDER BY attempt LIMIT $2 FOR UPDATE SKIP LOCKED
)
UPDATE payments p SET attempt = DEFAULT
FROM found WHERE p.attempt = found.attempt
RETURNING replace(p.id::text, '-', '') AS id, p.tenant, replace(p.wallet::text, '-', '') AS wallet, replace(p.bucket::text, '-', '') AS bucket,
          p.code, p.amount, p.take, p.per_buyer AS "perBuyer", p.prices, p.counter, p.metadata, p.attempt
