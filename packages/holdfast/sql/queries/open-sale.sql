-- Made once, with its items; a second time only tells what is there.
WITH made AS (
  INSERT INTO sales (tenant, id, terms, opened_at) VALUES ($1, $2, $3, clock_ms()) ON CONFLICT DO NOTHING RETURNING id
), listed AS (
  INSERT INTO sale_items (tenant, sale, item, id, quantity)
  SELECT $1, made.id, i.item, i.id, i.quantity
  FROM made, unnest($4::text[], $5::bigint[]) WITH ORDINALITY AS i(id, quantity, item)
)
SELECT EXISTS (SELECT FROM made) AS made, CASE WHEN NOT EXISTS (SELECT FROM made) THEN await_replicas() END
