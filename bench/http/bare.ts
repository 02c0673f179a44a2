/** What HTTP itself costs: a Fastify with the same two routes that reads the body, does nothing, and answers as many bytes. */
import { fastify } from 'fastify'

const HASH = 'e7a8ddb6bc1d54c085766859f252c9c8b58b83af'
const ENTRY = {
  seq: 4_711,
  epoch: 1_000_000_002,
  kind: 'settle',
  key: 's-1234567',
  at: 1_794_761_100_935,
  amount: 70,
  availableDelta: 30,
  reservedDelta: -100,
  available: 999_999_999_930,
  reserved: 0,
  hold: 'h-1234567',
  counter: 'revenue',
  prev: HASH,
  hash: HASH,
}
const FACTS = { id: 'h-1234567', amount: 100, captured: 70, left: 0, expiresAt: 1_794_762_000_935 }
const RECEIPT = { entry: ENTRY, available: ENTRY.available, reserved: 0, replayed: false, durability: 'ledger' }

/** Tells its parent where it listens. */
export async function serveBare(): Promise<void> {
  const app = fastify()
  app.post('/v1/wallets/:id/holds', async () => ({ ...FACTS, receipt: RECEIPT }))
  app.post('/v1/wallets/:id/holds/:hold/settle', async () => ({ ...RECEIPT, hold: FACTS }))
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  process.send?.({ url })
  process.on('SIGINT', () => {})
  process.once('disconnect', () => process.exit(0))
}
