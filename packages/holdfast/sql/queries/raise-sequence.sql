INSERT INTO sequences AS s (owner, tenant, operation, scope, gapless, last)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (owner, tenant, operation, scope, gapless) DO UPDATE SET last = greatest(s.last, EXCLUDED.last)
RETURNING last
