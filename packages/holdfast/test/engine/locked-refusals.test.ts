import { afterAll, expect, it } from 'vitest'
import { PostgresJournal } from '../../src/journal/index.js'
import { command } from '../../src/machine/index.js'
import { Postgres } from '../../src/postgres/index.js'
import { Keys } from '../../src/redis/index.js'
import { NO_REDIS, until } from '../api/support/paths.js'
import { Engines, openWallet, ownServers } from './support/engines.js'
import { Gate } from './support/gate.js'

/** Rows that somebody keeps locked, on the Postgres path. */
const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 8), shards: 1 })
const engines = new Engines(keys)
const { url, journal } = await ownServers()
const hasty = new Postgres(url, { lockTimeoutMs: 200 })
const holder = new Postgres(url, { idleInTransactionTimeoutMs: 60_000 })

afterAll(async () => {
  await engines.close()
  await hasty.close()
  await holder.close()
})

const LEDGER = { memory: false, timeoutMs: 20_000 }
const tooMuch = (key: string) => command({ kind: 'debit', key, amount: 100 })

/** A refusal waits at the gate until its row is locked. */
class Refusing extends PostgresJournal {
  readonly gate = new Gate()
  asked = 0

  override async confirm(...asked: Parameters<PostgresJournal['confirm']>): ReturnType<PostgresJournal['confirm']> {
    this.asked += 1
    await this.gate.opened
    return super.confirm(...asked)
  }
}

it('holds up the refusals of nobody else, and is told no once it is free', async () => {
  const [locked, free] = [keys.of('locked'), keys.of('free')]
  await openWallet(journal, locked, 'locked')
  await openWallet(journal, free, 'free')
  const gated = new Refusing(hasty)
  const events: string[] = []
  const { engine } = engines.start({
    redisUrl: NO_REDIS,
    postgres: hasty,
    journal: gated,
    telemetry: { log: (_level, event) => void events.push(event) },
    options: { sweepEveryMs: 600_000 },
  })
  const refused = { code: 'insufficient_funds' }
  await expect(engine.submit(free, tooMuch('first'), LEDGER)).rejects.toMatchObject(refused)

  gated.gate.shut()
  const before = gated.asked
  let told = 'nothing'
  const waiting = engine.submit(locked, tooMuch('waits'), LEDGER).catch((error) => {
    told = error.code
  })
  await until(() => gated.asked > before)
  await holder.transaction(async (tx) => {
    await tx.execute('lock', `SELECT FROM wallets WHERE ref = '${locked.ref}' FOR UPDATE`)
    gated.gate.open()
    for (let n = 0; n < 20; n += 1)
      await expect(engine.submit(free, tooMuch(`meanwhile ${n}`), LEDGER)).rejects.toMatchObject(refused)
    expect(told).toBe('nothing')
    expect(engine.load.refusals).toBeLessThanOrEqual(1)
  })
  await waiting
  expect(told).toBe('insufficient_funds')
  expect(events).not.toContain('postgres_away')
})
