-- A page before a place: time to the microsecond, and id where times are equal. From infinity on: all.
SELECT id, client_id, type, amount::text AS amount, stripe_payment_intent_id, resource,
       coalesce(to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z "AD'), created_at::text) AS created_at
FROM stripe402_transactions t
WHERE client_id = $1 AND (t.created_at, id) < ($2::timestamptz, $3)
ORDER BY t.created_at DESC, id DESC LIMIT $4
