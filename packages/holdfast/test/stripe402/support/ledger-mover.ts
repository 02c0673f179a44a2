/**
 * A process that moves money as fast as it can until it is killed, and tells its parent of each move before and after: so that whatever
 * becomes of it, the parent knows what was begun and what was answered.
 */
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { Holdfast } from '../../../src/index.js'
import { HoldfastStore, type LedgerStore, type Movement, PostgresStore } from '../../../src/stripe402/index.js'
import type { MoverOrder, MoverTold } from './movers.js'

const { store: kind, clients } = JSON.parse(process.argv[2] as string) as MoverOrder

/** Resolves when it has left this process. */
const tell = (told: MoverTold) => new Promise<void>((resolve) => process.send?.(told, () => resolve()))

/** None of them is to end before it is killed. */
const PATIENCE_MS = 60_000

async function open(): Promise<LedgerStore> {
  if (kind.type === 'postgres') {
    const pool = new pg.Pool({ connectionString: kind.url })
    return new PostgresStore(pool, { connectTimeoutMs: PATIENCE_MS, answerTimeoutMs: PATIENCE_MS })
  }
  const { redis, postgres } = kind
  return new HoldfastStore(await Holdfast.connect({ redis, postgres, audit: false, timeout: PATIENCE_MS }))
}

async function move(store: LedgerStore): Promise<void> {
  const clientId = clients[Math.floor(Math.random() * clients.length)] as string
  const type = Math.random() < 0.5 ? 'topup' : 'deduction'
  const movement: Movement = { id: randomUUID(), clientId, type, amount: 1 + Math.floor(Math.random() * 500) }
  await tell({ type: 'begin', movement })
  const balance = await store.move(movement)
  await tell({ type: 'end', id: movement.id, balance })
}

const store = await open()
await tell({ type: 'ready' })
await Promise.all(
  Array.from({ length: 8 }, async () => {
    for (;;) await move(store)
  }),
)
