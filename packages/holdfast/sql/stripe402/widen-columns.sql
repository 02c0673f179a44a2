-- Rewrites an older table with nobody else at it. A column that is bigint is left alone, so doing it again costs nothing.
SELECT pg_advisory_xact_lock(hashtextextended('holdfast stripe402 tables', 0));

DO $$
BEGIN
  -- Everybody who comes to the table queues behind who waits for it alone.
  PERFORM set_config('lock_timeout', '5s', true);
  IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass('stripe402_clients') AND attname = 'balance' AND atttypid = 'int4'::regtype) THEN
    ALTER TABLE stripe402_clients ALTER COLUMN balance TYPE bigint;
  END IF;
  IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass('stripe402_transactions') AND attname = 'amount' AND atttypid = 'int4'::regtype) THEN
    ALTER TABLE stripe402_transactions ALTER COLUMN amount TYPE bigint;
  END IF;
END
$$
