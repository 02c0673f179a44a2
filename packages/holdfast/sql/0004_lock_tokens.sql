-- Tokens of wallet locks: one row of numbers for the whole database, so that they grow whatever Redis forgets. A sequence waits for
-- nobody, and goes back neither after a crash nor on a replica that has all that was acknowledged. At most 2^53 - 1: tokens are numbers
-- in JavaScript.
CREATE SEQUENCE lock_tokens MAXVALUE 9007199254740991;
