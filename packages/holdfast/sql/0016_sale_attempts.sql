-- What was tried in sales, refused or not. Beside the journal, which has every effect: this says who has asked, and what was answered.
-- Written in batches, behind the answers; a process that dies takes its last moments of it along.
--
-- A process numbers its attempts, so that a batch of which nobody knows whether it was written can be written again.
CREATE TABLE sale_attempts (
  -- The sale's first bucket, which has the sale's id.
  sale uuid NOT NULL,
  at bigint NOT NULL,
  writer bigint NOT NULL,
  n bigint NOT NULL,
  kind text NOT NULL,
  outcome text NOT NULL,
  -- Why not, in the words of the errors.
  code text,
  -- Who asked, as the sale knows it. Who buys or cancels is known by the checkout.
  buyer uuid,
  checkout text COLLATE "C",
  -- What was asked for, by the numbers of the items; where those could not be looked up, by their ids.
  items text,
  PRIMARY KEY (sale, at, writer, n)
);

CREATE INDEX sale_attempts_buyer ON sale_attempts (buyer, at) WHERE buyer IS NOT NULL;
-- Only of what was done with a checkout: who made it is found by the index before.
CREATE INDEX sale_attempts_checkout ON sale_attempts (checkout) WHERE checkout IS NOT NULL AND buyer IS NULL;
-- For pruning: rows come about in the order of their time, so that a few bytes for each stretch of the table tell which of them is old.
CREATE INDEX sale_attempts_at ON sale_attempts USING brin (at) WITH (pages_per_range = 32, autosummarize = on);
