-- Items of a sale that there is more than one of, in their order, behind a number.
SELECT item, quantity FROM sale_items WHERE tenant = $1 AND sale = $2 AND quantity > 1 AND item > $3 ORDER BY item LIMIT $4
