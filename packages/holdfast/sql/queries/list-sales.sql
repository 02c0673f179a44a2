-- A page of a tenant's sales by id, after $2. Those that are not filled yet are none.
SELECT id, terms FROM sales WHERE tenant = $1 AND id > $2 AND ready ORDER BY id LIMIT $3
