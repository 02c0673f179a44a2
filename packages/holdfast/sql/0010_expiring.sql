-- Wallets whose next expiry is near and that somebody has looked at: as of which entry, and when the next of their holds runs out that was
-- not near yet. So a look costs what has changed since the last one, not how many holds are about to run out.
CREATE TABLE feed_expiring_wallets (
  wallet uuid PRIMARY KEY,
  seq bigint NOT NULL,
  -- 0: there is none.
  next_at bigint NOT NULL,
  looked_at bigint NOT NULL
);
CREATE INDEX feed_expiring_wallets_by_time ON feed_expiring_wallets (looked_at);
