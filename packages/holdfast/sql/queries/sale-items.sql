-- Items of a sale by their ids, and by their numbers. One by one, and a number as the first from there on: so each can only be looked up in its own
-- index. A plan made while there were no items would read all of the sale otherwise.
SELECT i.* FROM unnest($3::text[]) AS wanted(id) CROSS JOIN LATERAL (
  SELECT item, id, quantity FROM sale_items s WHERE s.tenant = $1 AND s.sale = $2 AND s.id >= wanted.id ORDER BY s.id LIMIT 1
) AS i WHERE i.id = wanted.id
UNION ALL
SELECT i.* FROM unnest($4::integer[]) AS wanted(item) CROSS JOIN LATERAL (
  SELECT item, id, quantity FROM sale_items s WHERE s.tenant = $1 AND s.sale = $2 AND s.item >= wanted.item ORDER BY s.item LIMIT 1
) AS i WHERE i.item = wanted.item
