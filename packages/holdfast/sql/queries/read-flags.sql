-- All flags of a tenant, or the one of name $2, and after which change they are so: one statement, so one moment.
SELECT coalesce(h.revision, 0) AS revision, coalesce(h.mark, 0) AS mark,
       coalesce((SELECT jsonb_agg(flag_json(f) ORDER BY f.name) FROM flags f WHERE f.tenant = $1 AND ($2::text IS NULL OR f.name = $2)), '[]') AS flags
FROM (VALUES (true)) AS always LEFT JOIN flag_heads h ON h.tenant = $1
