SELECT hold, amount, captured, left_over, expires_at, refunded FROM open_holds($1, $2)
