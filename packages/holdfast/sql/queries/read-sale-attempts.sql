-- Attempts in a sale ($1) after a place ($2, $3, $4), in the order of their time, at most $5.
SELECT at, writer, n, kind, outcome, code, checkout, items FROM sale_attempts
WHERE sale = $1 AND (at, writer, n) > ($2, $3, $4)
ORDER BY at, writer, n LIMIT $5
