SELECT refuse_token($1, $2, $3, $4, $5) AS because
