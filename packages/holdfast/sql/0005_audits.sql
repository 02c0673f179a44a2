-- What the auditor knows of each wallet: up to which entry its journal was verified, and the state that this led to. An audit goes on
-- from there, so its cost follows what has changed, not how long the journals are; and whoever rewrites history has to rewrite this too.

CREATE TABLE audits (
  -- A wallet's shard never changes. Here, because the wallets can't be listed by it: an index of them on it would be one more for every
  -- append that moves a due time.
  shard integer NOT NULL,
  wallet uuid NOT NULL,
  seq bigint NOT NULL DEFAULT 0,
  -- Null: nothing was verified yet.
  head bytea,
  epoch bigint NOT NULL DEFAULT 0,
  at bigint NOT NULL DEFAULT 0,
  available bigint NOT NULL DEFAULT 0,
  reserved bigint NOT NULL DEFAULT 0,
  credit_limit bigint NOT NULL DEFAULT 0,
  status wallet_status NOT NULL DEFAULT 'active',
  -- When the next of its open holds runs out, exactly; 0: none is open.
  due bigint NOT NULL DEFAULT 0,
  holds jsonb,
  -- When its journal was last read from the beginning.
  full_at bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (shard, wallet)
);

-- Who audits a shard, until when, and when that was last done.
CREATE TABLE audit_shards (
  shard integer PRIMARY KEY,
  holder text,
  lease_until bigint NOT NULL DEFAULT 0,
  audited_at bigint NOT NULL
);

-- As `Keys.shard` in src/redis/keys.ts: from the ref's first 32 bits.
CREATE FUNCTION shard_of(ref uuid, shards integer) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
  SELECT (('x' || left(ref::text, 8))::bit(32)::bigint % shards)::integer
$$;

-- Wallets that were opened before there was this table.
INSERT INTO audits (shard, wallet)
SELECT shard_of(w.ref, s.shards), w.ref FROM wallets w CROSS JOIN settings s WHERE s.shards IS NOT NULL;
