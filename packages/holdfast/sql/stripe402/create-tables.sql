-- What is there already is left as it is. The lock is for those who come at once: CREATE TABLE IF NOT EXISTS alone fails for some of them.
-- Names are bare: the tables are where the connection's search path finds or makes them.
SELECT pg_advisory_xact_lock(hashtextextended('holdfast stripe402 tables', 0));

CREATE TABLE IF NOT EXISTS stripe402_clients (
  client_id text PRIMARY KEY,
  stripe_customer_id text NOT NULL,
  balance bigint NOT NULL DEFAULT 0,
  currency text NOT NULL DEFAULT 'usd',
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now()
);

-- A transaction may be recorded before its client is, as in Redis: an older table asks for the client first. The index is what lists are
-- read by. An older table has one by client alone, which will do: no table is locked to index it unasked.
DO $$
BEGIN
  IF to_regclass('stripe402_transactions') IS NOT NULL THEN RETURN; END IF;
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
END
$$;

-- What was answered to a key of addBalance and deductBalance, and to the id of a move: published tables have no place for it.
CREATE TABLE IF NOT EXISTS stripe402_keys (
  client_id text NOT NULL,
  scope text NOT NULL CHECK (scope IN ('balance', 'transaction')),
  key text NOT NULL,
  type text NOT NULL CHECK (type IN ('topup', 'deduction')),
  amount bigint NOT NULL,
  balance bigint NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (client_id, scope, key)
)
