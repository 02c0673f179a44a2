-- $2 is what is added; negative: taken. A balance that is not whole, not within 0 and 2^53 - 1, or would not be, is left as it is.
WITH changed AS (
  UPDATE stripe402_clients SET balance = balance + $2::bigint, updated_at = now()
  WHERE client_id = $1
    -- In this order: what is far too large can't be added to.
    AND CASE WHEN balance BETWEEN 0 AND 9007199254740991 AND balance % 1 = 0
             THEN balance + $2::bigint BETWEEN 0 AND 9007199254740991 ELSE false END
  RETURNING balance::text AS balance
)
SELECT client.client_id IS NOT NULL AS known, client.balance AS before, changed.balance AS after
FROM (SELECT) one
LEFT JOIN (SELECT client_id, balance::text AS balance FROM stripe402_clients WHERE client_id = $1) client ON true
LEFT JOIN changed ON true
