SELECT take_numbers($1, $2, $3, $4, false, $5) AS last
