-- What was done to the flags of a tenant, or to the one of name $2: the latest first, from before change $3.
SELECT revision, name, kind, at, made_by, why, before, after FROM flag_changes
WHERE tenant = $1 AND ($2::text IS NULL OR name = $2) AND ($3::bigint IS NULL OR revision < $3)
ORDER BY revision DESC LIMIT $4
