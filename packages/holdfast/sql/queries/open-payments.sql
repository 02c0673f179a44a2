-- Those that have waited longest first.
SELECT replace(id::text, '-', '') AS id, tenant, replace(wallet::text, '-', '') AS wallet, replace(bucket::text, '-', '') AS bucket, code,
       amount, take, per_buyer AS "perBuyer", prices, counter, metadata, attempt
FROM payments ORDER BY attempt LIMIT $1
