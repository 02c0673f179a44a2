-- Sequences whose numbers are given once, whatever Redis or a process forgets. `last` is the highest number that was given away, to a caller
-- or as a part of a block to a process; what is beyond it nobody has. At most 2^53 - 1: they are numbers in JavaScript.
CREATE TABLE sequences (
  owner text COLLATE "C" NOT NULL,
  tenant text COLLATE "C" NOT NULL,
  operation text COLLATE "C" NOT NULL,
  -- What it is of, hashed with the secret of this very database: with another one, which an application may bring and change, every
  -- sequence would begin anew.
  scope text COLLATE "C" NOT NULL CHECK (length(scope) = 32),
  -- One from which blocks are taken has gaps, so the two never share a row.
  gapless boolean NOT NULL,
  last bigint NOT NULL CONSTRAINT sequences_are_exact CHECK (last BETWEEN 0 AND 9007199254740991),
  PRIMARY KEY (owner, tenant, operation, scope, gapless)
);

-- The last of the next numbers. Who comes at the same time waits for the row until this transaction is over, and gets those after it; of one
-- that is rolled back the numbers are given again.
CREATE FUNCTION take_numbers(of_owner text, of_tenant text, of_operation text, of_scope text, is_gapless boolean, how_many bigint)
RETURNS bigint LANGUAGE sql SET search_path FROM CURRENT AS $$
  INSERT INTO sequences AS s (owner, tenant, operation, scope, gapless, last)
  VALUES (of_owner, of_tenant, of_operation, of_scope, is_gapless, how_many)
  ON CONFLICT (owner, tenant, operation, scope, gapless) DO UPDATE SET last = s.last + how_many
  RETURNING last
$$;
