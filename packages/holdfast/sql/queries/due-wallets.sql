SELECT replace(ref::text, '-', '') AS ref, tenant FROM wallets WHERE due > 0 AND due <= $1 ORDER BY due LIMIT $2
