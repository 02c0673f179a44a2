-- See the function: one statement for many refusals.
SELECT current, held, seen, hold_made, hold_expired, epoch, CASE WHEN NOT (current AND held) THEN owner END AS owner, locked
FROM confirm($1, $2, $3, $4, $5, $6, $7) ORDER BY n
