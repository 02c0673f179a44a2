-- The first time counts: revoking again changes nothing.
UPDATE api_keys SET revoked_at = coalesce(revoked_at, clock_ms()) WHERE id = $1
RETURNING id, tenant, name, scopes, wallet_prefix, hash, created_at, expires_at, revoked_at, last_used_at, rate_max, concurrent_max,
          body_max_bytes, clock_ms() AS clock
