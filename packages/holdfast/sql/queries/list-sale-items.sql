-- Items of a sale in their order, behind a number ($3). As a place in the whole index, so that no other can be taken for it: see sale-items.sql.
SELECT item, id, quantity FROM (
  SELECT tenant, sale, item, id, quantity FROM sale_items
  WHERE (tenant, sale, item) > ($1, $2, $3::integer) ORDER BY tenant, sale, item LIMIT $4
) AS page
WHERE tenant = $1 AND sale = $2 ORDER BY item
