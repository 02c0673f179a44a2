SELECT id, client_id, type, amount::text AS amount, stripe_payment_intent_id, resource,
       coalesce(to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z "AD'), created_at::text) AS created_at
FROM stripe402_transactions WHERE client_id = $1 AND id = $2
