-- Balance, transaction and what is kept for who asks again, all of it or nothing. $2 is what is added; negative: taken.
WITH seen AS (
  SELECT type, amount::text AS amount, balance::text AS balance FROM stripe402_keys
  WHERE client_id = $1 AND scope = 'transaction' AND key = $3
),
-- Its balance was changed by other means.
recorded AS (
  SELECT type, amount::text AS amount FROM stripe402_transactions WHERE client_id = $1 AND id = $3
),
changed AS (
  UPDATE stripe402_clients SET balance = balance + $2::bigint, updated_at = now()
  WHERE client_id = $1 AND NOT EXISTS (SELECT FROM seen) AND NOT EXISTS (SELECT FROM recorded)
    -- In this order: what is far too large can't be added to.
    AND CASE WHEN balance BETWEEN -9007199254740991 AND 9007199254740991 AND balance % 1 = 0
             THEN balance + $2::bigint <= 9007199254740991 AND ($4 = 'topup' OR balance + $2::bigint >= 0) ELSE false END
  RETURNING client_id, balance
),
filed AS (
  INSERT INTO stripe402_transactions (id, client_id, type, amount, stripe_payment_intent_id, resource, created_at)
  SELECT $3, client_id, $4, abs($2::bigint), $5, $6, $7::timestamptz FROM changed
),
kept AS (
  INSERT INTO stripe402_keys (client_id, scope, key, type, amount, balance)
  SELECT client_id, 'transaction', $3, $4, abs($2::bigint), balance FROM changed
)
SELECT client.client_id IS NOT NULL AS known, client.balance AS before, changed.balance::text AS after,
       coalesce(seen.type, recorded.type) AS seen_type, coalesce(seen.amount, recorded.amount) AS seen_amount,
       seen.balance AS seen_balance,
       -- What is told of again must be where it can't be lost: see await_replicas in 0001_settings.sql.
       CASE WHEN coalesce(seen.type, recorded.type) IS NOT NULL AND current_setting('synchronous_standby_names') <> ''
            THEN pg_logical_emit_message(true, 'holdfast', '') END AS awaited
FROM (SELECT) one
LEFT JOIN (SELECT client_id, balance::text AS balance FROM stripe402_clients WHERE client_id = $1) client ON true
LEFT JOIN changed ON true
LEFT JOIN recorded ON true
LEFT JOIN seen ON true
