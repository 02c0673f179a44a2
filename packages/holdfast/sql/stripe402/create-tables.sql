-- What is there already is left as it is, wherever on the search path it is: CREATE TABLE IF NOT EXISTS would look in one schema alone. The
-- lock is for those who come at once. Names are bare: the tables are where the connection's search path finds or makes them.
SELECT pg_advisory_xact_lock(hashtextextended('holdfast stripe402 tables', 0));

DO $$
BEGIN
  IF to_regclass('stripe402_clients') IS NULL THEN
    CREATE TABLE stripe402_clients (
      client_id text PRIMARY KEY,
      stripe_customer_id text NOT NULL,
      balance bigint NOT NULL DEFAULT 0,
      currency text NOT NULL DEFAULT 'usd',
      created_at timestamptz NOT NULL DEFAULT now(),
      updated_at timestamptz NOT NULL DEFAULT now()
    );
  END IF;

  -- A transaction may be recorded before its client is, as in Redis: an older table asks for the client first. The index is what lists are
  -- read by. An older table has one by client alone, which will do: no table is locked to index it unasked.
  IF to_regclass('stripe402_transactions') IS NULL THEN
    CREATE TABLE stripe402_transactions (
      id text NOT NULL,
      client_id text NOT NULL,
      type text NOT NULL CHECK (type IN ('topup', 'deduction')),
      amount bigint NOT NULL,
      stripe_payment_intent_id text,
      resource text,
      created_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (client_id, id)
    );
    CREATE INDEX stripe402_transactions_by_time ON stripe402_transactions (client_id, created_at, id);
  END IF;

  -- What was answered to a key of addBalance and deductBalance, and to the id of a move: published tables have no place for it.
  IF to_regclass('stripe402_keys') IS NULL THEN
    CREATE TABLE stripe402_keys (
      client_id text NOT NULL,
      scope text NOT NULL CHECK (scope IN ('balance', 'transaction')),
      key text NOT NULL,
      type text NOT NULL CHECK (type IN ('topup', 'deduction')),
      amount bigint NOT NULL,
      balance bigint NOT NULL,
      created_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (client_id, scope, key)
    );
  END IF;
END
$$
