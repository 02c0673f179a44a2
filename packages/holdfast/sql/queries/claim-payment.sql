-- For one of those who saw it; the others see another number.
UPDATE payments SET attempt = DEFAULT WHERE attempt = $1 RETURNING attempt
