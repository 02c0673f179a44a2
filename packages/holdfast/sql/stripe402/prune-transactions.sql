-- What some clients have of before a time, and up to which client that was. By client, since that is what every installation has an index for.
WITH page AS (
  SELECT DISTINCT client_id FROM stripe402_transactions WHERE client_id > $1 ORDER BY client_id LIMIT $3
),
gone AS (
  DELETE FROM stripe402_transactions t USING page WHERE t.client_id = page.client_id AND t.created_at < $2::timestamptz RETURNING 1
)
SELECT (SELECT max(client_id) FROM page) AS last, (SELECT count(*) FROM gone)::integer AS gone
