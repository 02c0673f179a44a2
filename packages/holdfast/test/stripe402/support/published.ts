/** Tables and rows as stripe402 itself makes them, in plain SQL. */
import type pg from 'pg'

export async function makePublishedTables(pool: pg.Pool): Promise<void> {
  await pool.query(`
    CREATE TABLE stripe402_clients (
      client_id text PRIMARY KEY,
      stripe_customer_id text NOT NULL,
      balance integer NOT NULL DEFAULT 0,
      currency text NOT NULL DEFAULT 'usd',
      created_at timestamptz NOT NULL DEFAULT now(),
      updated_at timestamptz NOT NULL DEFAULT now()
    );
    CREATE TABLE stripe402_transactions (
      id text PRIMARY KEY,
      client_id text NOT NULL REFERENCES stripe402_clients (client_id),
      type text NOT NULL CHECK (type IN ('topup', 'deduction')),
      amount integer NOT NULL,
      stripe_payment_intent_id text,
      resource text,
      created_at timestamptz NOT NULL DEFAULT now()
    );
    CREATE INDEX idx_stripe402_transactions_client_id ON stripe402_transactions (client_id)`)
}

export async function insertClient(pool: pg.Pool, clientId: string, balance: string | number | null): Promise<void> {
  await pool.query(
    `INSERT INTO stripe402_clients (client_id, stripe_customer_id, balance, created_at, updated_at)
     VALUES ($1, 'cus_1', $2, '2024-01-15T10:30:00.123Z', '2024-01-15T10:31:05.456Z')`,
    [clientId, balance],
  )
}

export async function insertTransaction(
  pool: pg.Pool,
  clientId: string,
  id: string,
  type: 'topup' | 'deduction',
  amount: number,
  at = '2024-01-15T10:30:00.123Z',
): Promise<void> {
  await pool.query(
    'INSERT INTO stripe402_transactions (id, client_id, type, amount, created_at) VALUES ($1, $2, $3, $4, $5)',
    [id, clientId, type, amount, at],
  )
}

/** Everything that the tables hold, to the letter. */
export async function dumpOf(pool: pg.Pool): Promise<unknown> {
  const { rows } = await pool.query(`
    SELECT (SELECT json_agg(c ORDER BY client_id) FROM stripe402_clients c) AS clients,
           (SELECT json_agg(t ORDER BY client_id, id) FROM stripe402_transactions t) AS transactions`)
  return rows
}

/** The code that a call ends with. */
export const codeOf = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    (answer) => `answered ${String(answer)}`,
    (error: { code?: unknown }) => error.code ?? error,
  )

export async function allOf<T>(walk: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const one of walk) all.push(one)
  return all
}
