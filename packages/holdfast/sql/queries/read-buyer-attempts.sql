-- The same of one buyer ($6): its checkouts, and what became of them. A buyer is one of this sale alone. Each half is found by an index of its
-- own: with the sale in one condition with it Postgres read all attempts of the sale in their order, 40,000 pages for what needs less than 50.
WITH acts AS MATERIALIZED (
  SELECT sale, at, writer, n, kind, outcome, code, checkout, items FROM sale_attempts
  WHERE buyer IS NULL
    AND checkout = ANY (ARRAY(SELECT c.checkout FROM sale_attempts c WHERE c.buyer = $6 AND c.checkout IS NOT NULL))
)
(
  SELECT at, writer, n, kind, outcome, code, checkout, items FROM sale_attempts
  WHERE buyer = $6 AND at >= $2 AND (at, writer, n) > ($2, $3, $4)
  ORDER BY at, writer, n LIMIT $5
)
UNION ALL
SELECT at, writer, n, kind, outcome, code, checkout, items FROM acts
WHERE sale = $1 AND (at, writer, n) > ($2, $3, $4)
ORDER BY at, writer, n LIMIT $5
