-- `clock`: whether it has expired is a question to one clock, not to each server's own.
SELECT id, tenant, name, scopes, wallet_prefix, hash, created_at, expires_at, revoked_at, last_used_at, rate_max, concurrent_max,
       body_max_bytes, clock_ms() AS clock
FROM api_keys WHERE id = ANY ($1::text[])
