-- $1 null: those of all tenants.
SELECT id, tenant, name, scopes, wallet_prefix, hash, created_at, expires_at, revoked_at, last_used_at, rate_max, concurrent_max,
       body_max_bytes, clock_ms() AS clock
FROM api_keys WHERE $1::text IS NULL OR tenant = $1 ORDER BY tenant, created_at, id
