SELECT head, mark, relayed, more, feeding FROM relay_feed($1, $2)
