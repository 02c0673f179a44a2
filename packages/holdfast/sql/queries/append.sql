-- See the function: one statement appends many runs, and says what became of those that were not appended as a whole.
SELECT refused, present, begun, clock_ms() AS clock FROM append($1, $2, $3, $4, $5, $6, $7, $8)
