-- A change of a flag and its row in the history: see change_flag().
SELECT outcome, flag FROM change_flag($1, $2, $3, $4, $5, $6, $7, $8, $9)
