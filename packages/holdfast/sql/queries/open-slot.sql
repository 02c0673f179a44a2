-- A slot, its sale and the items of that, all of it or nothing: unless somebody has opened one, changed or paused the schedule since it was
-- read, or the slot is past. `taken`: there is a sale of this name that is no slot's, with other terms or items. One that comes while this
-- runs is a unique violation, and nothing has happened.
WITH there AS MATERIALIZED (
  SELECT terms = $8::jsonb AS same FROM sales WHERE tenant = $1 AND id = $7
), taken AS (
  SELECT FROM there
  WHERE NOT same AND NOT EXISTS (SELECT FROM sale_slots WHERE tenant = $1 AND schedule = $2 AND starts_at = $5)
), moved AS (
  UPDATE sale_schedules SET opened_until = $6
  WHERE tenant = $1 AND id = $2 AND opened_until = $3 AND version = $4 AND NOT paused AND $6 > clock_ms()
    AND NOT EXISTS (SELECT FROM taken)
  RETURNING id, version
), slot AS (
  INSERT INTO sale_slots (tenant, schedule, starts_at, ends_at, sale, version, opened_at)
  SELECT $1, moved.id, $5, $6, $7, moved.version, clock_ms() FROM moved
), made AS (
  INSERT INTO sales (tenant, id, terms, opened_at)
  SELECT $1, $7, $8, clock_ms() FROM moved WHERE NOT EXISTS (SELECT FROM there) RETURNING id
), listed AS (
  INSERT INTO sale_items (tenant, sale, item, id, quantity)
  SELECT $1, made.id, i.item, i.id, i.quantity
  FROM made, unnest($9::text[], $10::bigint[]) WITH ORDINALITY AS i(id, quantity, item)
)
SELECT EXISTS (SELECT FROM moved) AS opened, EXISTS (SELECT FROM taken) AS taken
