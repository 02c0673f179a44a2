-- All of its stock is there: from now on it can be bought. Said once, where somebody asks for events, of the bucket $3.
WITH opened AS (
  UPDATE sales SET ready = true WHERE tenant = $1 AND id = $2 AND NOT ready RETURNING terms - 'itemsHash' AS terms
)
INSERT INTO feed_inbox (wallets, firsts, lasts, notice, tenant)
SELECT ARRAY[$3::uuid], '{0}', '{0}', jsonb_build_object('event', 'sale.opened', 'terms', o.terms), $1
FROM opened o WHERE EXISTS (SELECT FROM settings s WHERE s.feed_until > clock_ms())
