-- The stock of a sale at some seq, so that loading it does not read everything since it began. It is only a shortcut: the journal has all
-- of it.
CREATE TABLE stock_checkpoints (
  wallet uuid NOT NULL PRIMARY KEY,
  seq bigint NOT NULL,
  stock jsonb NOT NULL
);
