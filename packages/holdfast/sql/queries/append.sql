-- See the function: one statement appends many runs, and says which it refused.
SELECT append($1, $2, $3, $4, $5, $6, $7, $8) AS refused, clock_ms() AS clock
