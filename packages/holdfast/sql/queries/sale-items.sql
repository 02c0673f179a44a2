-- Items of a sale by their ids, or by their numbers.
SELECT item, id, quantity FROM sale_items WHERE tenant = $1 AND sale = $2 AND (id = ANY ($3::text[]) OR item = ANY ($4::integer[]))
