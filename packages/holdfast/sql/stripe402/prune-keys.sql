-- What is kept for those who ask again goes by when it was answered.
WITH page AS (
  SELECT DISTINCT client_id FROM stripe402_keys WHERE client_id > $1 ORDER BY client_id LIMIT $3
),
gone AS (
  DELETE FROM stripe402_keys k USING page WHERE k.client_id = page.client_id AND k.created_at < $2::timestamptz RETURNING 1
)
SELECT (SELECT max(client_id) FROM page) AS last, (SELECT count(*) FROM gone)::integer AS gone
