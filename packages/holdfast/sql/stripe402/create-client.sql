-- One who is there is left as he is, with all that he has.
INSERT INTO stripe402_clients (client_id, stripe_customer_id, balance, currency, created_at, updated_at)
VALUES ($1, $2, $3::bigint, $4, $5::timestamptz, $6::timestamptz)
ON CONFLICT DO NOTHING
