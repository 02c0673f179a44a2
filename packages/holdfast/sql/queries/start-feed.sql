SELECT start_feed($1) AS begun
