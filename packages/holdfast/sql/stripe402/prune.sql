-- What some clients have of before a time. By client, since that is what every installation has an index for.
WITH page AS (
  SELECT client_id FROM stripe402_clients WHERE client_id > $1 ORDER BY client_id LIMIT $3
),
gone AS (
  DELETE FROM stripe402_transactions t USING page WHERE t.client_id = page.client_id AND t.created_at < $2::timestamptz RETURNING 1
),
forgotten AS (
  DELETE FROM stripe402_keys k USING page WHERE k.client_id = page.client_id AND k.created_at < $2::timestamptz
)
SELECT (SELECT max(client_id) FROM page) AS last, (SELECT count(*) FROM gone)::integer AS gone
