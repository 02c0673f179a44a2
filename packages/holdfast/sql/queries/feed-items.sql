-- Items by their numbers, each of a sale of a tenant.
SELECT i.tenant, i.sale, i.item, i.id
FROM unnest($1::text[], $2::text[], $3::integer[]) AS wanted(tenant, sale, item)
JOIN sale_items i USING (tenant, sale, item)
