SELECT is_consumed, because FROM consume_token($1, $2, $3, $4, $5)
