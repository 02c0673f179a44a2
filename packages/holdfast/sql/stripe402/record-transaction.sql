-- Once for an id. Neither made nor there: another made it at the same moment, and asking again shows it.
WITH made AS (
  INSERT INTO stripe402_transactions (id, client_id, type, amount, stripe_payment_intent_id, resource, created_at)
  VALUES ($2, $1, $3, $4::bigint, $5, $6, $7::timestamptz)
  ON CONFLICT DO NOTHING
  RETURNING id
)
SELECT made.id IS NOT NULL AS made, there.type, there.amount,
       -- What is told of again must be where it can't be lost: see await_replicas in 0001_settings.sql.
       CASE WHEN there.type IS NOT NULL AND current_setting('synchronous_standby_names') <> ''
            THEN pg_logical_emit_message(true, 'holdfast', '') END AS awaited
FROM (SELECT) one
LEFT JOIN made ON true
LEFT JOIN (SELECT type, amount::text AS amount FROM stripe402_transactions WHERE client_id = $1 AND id = $2) there ON true
