SELECT client_id, stripe_customer_id, balance::text AS balance, currency,
       coalesce(to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z "AD'), created_at::text) AS created_at,
       coalesce(to_char(updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z "AD'), updated_at::text) AS updated_at
FROM stripe402_clients WHERE client_id > $1 ORDER BY client_id LIMIT $2
