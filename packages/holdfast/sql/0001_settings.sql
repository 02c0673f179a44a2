-- What a database keeps about itself: one row, the same for every process that uses it.

CREATE TABLE settings (
  -- One row by construction: the only value that the check lets in is taken.
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  -- Keys the HMAC that hides personal ids in Redis keys. Made once: another secret would orphan every key made with this one.
  secret bytea NOT NULL CHECK (octet_length(secret) = 32),
  created_at timestamptz NOT NULL DEFAULT now()
);

-- gen_random_uuid() draws from the server's strong source, 122 bits each: three are more than the 256 that sha256 keeps.
INSERT INTO settings (secret) VALUES (
  sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))
);
