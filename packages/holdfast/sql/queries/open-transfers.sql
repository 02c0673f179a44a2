-- Those that have waited longest first.
SELECT replace(source::text, '-', '') AS source, key, replace(target::text, '-', '') AS target, amount, fee, tenant, counter, metadata, attempt
FROM transfers ORDER BY attempt LIMIT $1
