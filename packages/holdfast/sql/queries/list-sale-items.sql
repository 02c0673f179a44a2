-- Items of a sale in their order, after the $3rd.
SELECT item, id, quantity FROM sale_items WHERE tenant = $1 AND sale = $2 AND item > $3 ORDER BY item LIMIT $4
