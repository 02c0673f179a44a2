-- For one of those who saw it; the others see another number.
UPDATE transfers SET attempt = DEFAULT WHERE attempt = $1 RETURNING attempt
