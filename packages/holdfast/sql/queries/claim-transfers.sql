-- Those that have waited longest, with numbers up to $1, at most $2; not $3: who asks is at work on these. What somebody else is just setting to
-- work on is left to him: several who ask at once get others each.
WITH found AS (
  SELECT attempt FROM transfers WHERE attempt <= $1::bigint AND attempt <> ALL ($3::bigint[])
  ORDER BY attempt LIMIT $2 FOR UPDATE SKIP LOCKED
)
UPDATE transfers t SET attempt = DEFAULT
FROM found WHERE t.attempt = found.attempt
RETURNING replace(t.source::text, '-', '') AS source, t.key, replace(t.target::text, '-', '') AS target, t.amount, t.fee, t.tenant, t.counter,
          t.metadata, t.attempt
