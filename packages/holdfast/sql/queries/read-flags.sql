-- All flags of a tenant, or the one of name $2, and after which change they are so: one statement, so one moment.
SELECT coalesce((SELECT h.revision FROM flag_heads h WHERE h.tenant = $1), 0) AS revision,
       coalesce((SELECT jsonb_agg(flag_json(f) ORDER BY f.name) FROM flags f WHERE f.tenant = $1 AND ($2::text IS NULL OR f.name = $2)), '[]') AS flags
