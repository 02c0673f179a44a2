-- One who is there is left as he is, with all that he has.
WITH made AS (
  INSERT INTO stripe402_clients (client_id, stripe_customer_id, balance, currency, created_at, updated_at)
  VALUES ($1, $2, $3::bigint, $4, $5::timestamptz, $6::timestamptz)
  ON CONFLICT DO NOTHING
  RETURNING client_id
)
-- What is told of again must be where it can't be lost: see await_replicas in 0001_settings.sql.
SELECT CASE WHEN NOT EXISTS (SELECT FROM made) AND current_setting('synchronous_standby_names') <> ''
            THEN pg_logical_emit_message(true, 'holdfast', '') END AS awaited
