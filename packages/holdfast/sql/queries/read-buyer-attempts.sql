-- The same of one buyer ($6): its checkouts, and what became of them.
SELECT at, writer, n, kind, outcome, code, checkout, items FROM sale_attempts
WHERE sale = $1 AND (at, writer, n) > ($2, $3, $4)
  AND (buyer = $6 OR checkout IN (SELECT c.checkout FROM sale_attempts c WHERE c.buyer = $6 AND c.checkout IS NOT NULL))
ORDER BY at, writer, n LIMIT $5
