-- Keys that let programs in over HTTP. The key itself is shown once and never stored: what is kept is the SHA-256 of its secret part. That
-- is enough, because the secret is 238 random bits: there is nothing to guess that a slower hash would have to slow down.

CREATE TABLE api_keys (
  -- The part of the key that is no secret: it is found, listed and revoked by it.
  id text COLLATE "C" PRIMARY KEY,
  tenant text NOT NULL,
  name text NOT NULL,
  scopes text[] NOT NULL,
  -- Only wallets whose id begins with it; empty: all of the tenant.
  wallet_prefix text NOT NULL,
  hash bytea NOT NULL CHECK (octet_length(hash) = 32),
  created_at bigint NOT NULL,
  -- Null: it does not expire, was not revoked, was not used.
  expires_at bigint,
  revoked_at bigint,
  last_used_at bigint,
  -- Limits of its own; null: those of the server.
  rate_max integer,
  concurrent_max integer,
  body_max_bytes integer
);

CREATE INDEX api_keys_by_tenant ON api_keys (tenant, created_at);
