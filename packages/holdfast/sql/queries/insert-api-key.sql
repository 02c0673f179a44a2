INSERT INTO api_keys (id, tenant, name, scopes, wallet_prefix, hash, created_at, expires_at, rate_max, concurrent_max, body_max_bytes)
VALUES ($1, $2, $3, $4, $5, $6, clock_ms(), clock_ms() + $7::bigint, $8, $9, $10)
RETURNING id, tenant, name, scopes, wallet_prefix, hash, created_at, expires_at, revoked_at, last_used_at, rate_max, concurrent_max,
          body_max_bytes, clock_ms() AS clock
