-- $2 is what is added; negative: taken. $3 tells adding nothing from deducting nothing. A balance that is not whole, or not within
-- 2^53 - 1 of zero, or would not be, is left as it is.
WITH changed AS (
  UPDATE stripe402_clients SET balance = balance + $2::bigint, updated_at = now()
  WHERE client_id = $1
    -- In this order: what is far too large can't be added to. Only a deduction can be too much for what is there: a balance that older
    -- software brought below zero can be topped up.
    AND CASE WHEN balance BETWEEN -9007199254740991 AND 9007199254740991 AND balance % 1 = 0
             THEN balance + $2::bigint <= 9007199254740991 AND ($3 = 'topup' OR balance + $2::bigint >= 0) ELSE false END
  RETURNING balance::text AS balance
)
SELECT client.client_id IS NOT NULL AS known, client.balance AS before, changed.balance AS after
FROM (SELECT) one
LEFT JOIN (SELECT client_id, balance::text AS balance FROM stripe402_clients WHERE client_id = $1) client ON true
LEFT JOIN changed ON true
