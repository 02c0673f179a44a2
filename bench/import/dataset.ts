/** Clients and transactions as stripe402 writes them: the same ones in Redis by plain commands, and in Postgres by plain SQL. */
import { createHash } from 'node:crypto'
import { Redis } from 'ioredis'
import pg from 'pg'
import type { Plan } from './plan.js'

const PORTION = 500
const TOPUP = 50_000
const START_MS = Date.parse('2025-01-01T00:00:00.000Z')

interface Transaction {
  readonly id: string
  readonly type: 'topup' | 'deduction'
  readonly amount: number
  readonly at: string
}

interface Client {
  readonly id: string
  readonly balance: number
  readonly at: string
  readonly transactions: readonly Transaction[]
}

function clientOf(number: number, transactions: number): Client {
  const id = createHash('sha256').update(`client ${number}`).digest('hex')
  const at = (minute: number) => new Date(START_MS + number * 1_000 + minute * 60_000).toISOString()
  const all = Array.from({ length: transactions }, (_, n): Transaction => {
    const type = n === 0 ? 'topup' : 'deduction'
    return { id: `${id.slice(0, 8)}-${n}`, type, amount: n === 0 ? TOPUP : 100 + n, at: at(n) }
  })
  const balance = all.reduce((sum, { type, amount }) => sum + (type === 'topup' ? amount : -amount), 0)
  return { id, balance, at: at(transactions), transactions: all }
}

function* portions({ clients, transactions }: Plan): Generator<Client[]> {
  for (let first = 0; first < clients; first += PORTION) {
    const length = Math.min(PORTION, clients - first)
    yield Array.from({ length }, (_, n) => clientOf(first + n, transactions))
  }
}

export async function fillRedis(url: string, plan: Plan): Promise<void> {
  const redis = new Redis(url)
  for (const clients of portions(plan)) {
    const write = redis.pipeline()
    for (const { id: clientId, balance, at, transactions } of clients) {
      const fields = { clientId, stripeCustomerId: 'cus_1', balance: `${balance}`, currency: 'usd' }
      write.hset(`stripe402:client:${clientId}`, { ...fields, createdAt: at, updatedAt: at })
      for (const { id, type, amount, at: createdAt } of transactions) {
        const record = { id, clientId, type, amount, resource: 'GET /api/joke', createdAt }
        write.set(`stripe402:txn:${clientId}:${id}`, JSON.stringify(record))
        write.zadd(`stripe402:txns:${clientId}`, Date.parse(createdAt), id)
      }
    }
    await write.exec()
  }
  redis.disconnect()
}

export async function fillPostgres(url: string, plan: Plan): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  await client.query(`
    CREATE TABLE stripe402_clients (client_id text PRIMARY KEY, stripe_customer_id text NOT NULL,
      balance integer NOT NULL DEFAULT 0, currency text NOT NULL DEFAULT 'usd',
      created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now());
    CREATE TABLE stripe402_transactions (id text PRIMARY KEY, client_id text NOT NULL REFERENCES stripe402_clients (client_id),
      type text NOT NULL, amount integer NOT NULL, stripe_payment_intent_id text, resource text,
      created_at timestamptz NOT NULL DEFAULT now());
    CREATE INDEX idx_stripe402_transactions_client_id ON stripe402_transactions (client_id)`)
  for (const clients of portions(plan)) {
    await client.query(
      `INSERT INTO stripe402_clients SELECT id, 'cus_1', balance, 'usd', at, at
       FROM unnest($1::text[], $2::integer[], $3::timestamptz[]) c(id, balance, at)`,
      [clients.map(({ id }) => id), clients.map(({ balance }) => balance), clients.map(({ at }) => at)],
    )
    const rows = clients.flatMap(({ id: clientId, transactions }) => transactions.map((one) => ({ ...one, clientId })))
    await client.query(
      `INSERT INTO stripe402_transactions SELECT id, client_id, type, amount, NULL, 'GET /api/joke', at
       FROM unnest($1::text[], $2::text[], $3::text[], $4::integer[], $5::timestamptz[]) t(id, client_id, type, amount, at)`,
      (['id', 'clientId', 'type', 'amount', 'at'] as const).map((name) => rows.map((row) => row[name])),
    )
  }
  await client.query('VACUUM ANALYZE')
  await client.end()
}
