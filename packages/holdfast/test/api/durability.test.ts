import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { Holdfast, type Wallet } from '../../src/index.js'
import { type FaultyProxy, startProxy } from '../redis/support/proxy.js'
import { NO_REDIS, refusal, until } from './support/paths.js'

/** Nobody is impatient: what waits here waits for the proxy, however long the machine stands still. */
const CALM = {
  engine: { sweepEveryMs: 600_000, decideWithinMs: 20_000, postgresPatienceMs: 60_000 },
  redisOptions: { commandTimeoutMs: 20_000 },
}

/** Postgres behind a proxy: `hold` stops it between a decision and its append. */
let hf: Holdfast
let database: string
let redisUrl: string
let proxy: FaultyProxy
let wallets = 0

beforeAll(async () => {
  database = await freshDatabase()
  redisUrl = await freshRedis()
  proxy = await startProxy(Number(new URL(database).port))
  const postgres = Object.assign(new URL(database), { port: String(proxy.port) }).href
  hf = await Holdfast.connect({ redis: redisUrl, postgres, ...CALM })
})
afterAll(async () => {
  await hf.close()
  await proxy.close()
})

/** With 100 in it, and known to be used from memory. */
async function memoryWallet(): Promise<Wallet> {
  wallets += 1
  const wallet = hf.wallet(`memory-${wallets}`)
  await wallet.open({ currency: 'usd' })
  await wallet.credit(99, { key: 'in' })
  await wallet.credit(1, { key: 'in from memory', durability: 'memory' })
  await until(async () => (await wallet.get())?.seq === 2)
  return wallet
}

describe('durability memory', () => {
  it('says so in the receipt, and is committed a moment later', async () => {
    const wallet = await memoryWallet()
    proxy.hold()
    const receipt = await wallet.debit(30, { key: 'a', durability: 'memory' })
    expect(receipt).toMatchObject({ available: 70, replayed: false, durability: 'memory', entry: { seq: 3 } })
    proxy.behave()
    await until(async () => (await wallet.get())?.seq === 3)
    expect(await wallet.entries({ after: 2 })).toEqual([receipt.entry])
    expect(await wallet.debit(30, { key: 'a', durability: 'memory' })).toEqual({
      ...receipt,
      replayed: true,
      durability: 'ledger',
    })
  })

  it('waits for the journal where the key may have been decided before: Redis may have forgotten that', async () => {
    const wallet = await memoryWallet()
    const receipt = await wallet.debit(30, { key: 'a', durability: 'memory', retry: true })
    expect(receipt).toMatchObject({ replayed: false, durability: 'ledger', entry: { seq: 3 } })
    expect(await wallet.get()).toMatchObject({ available: 70, seq: 3 })
  })

  it('does not tell from memory what was not made to be: it would be lost if it were not appended', async () => {
    const wallet = await memoryWallet()
    proxy.hold()
    const first = wallet.debit(30, { key: 'a' })
    let answered = false
    const repeated = wallet.debit(30, { key: 'a', durability: 'memory' }).finally(() => {
      answered = true
    })
    // One more by another key is decided behind both, and told.
    await wallet.debit(1, { key: 'b', durability: 'memory' })
    await wallet.debit(1, { key: 'c', durability: 'memory' })
    expect(answered).toBe(false)
    proxy.behave()
    expect(await first).toMatchObject({ replayed: false, durability: 'ledger' })
    expect(await repeated).toMatchObject({ replayed: true, durability: 'ledger' })
  })

  it('makes a repetition that wants the ledger wait for the append', async () => {
    const wallet = await memoryWallet()
    proxy.hold()
    const receipt = await wallet.debit(30, { key: 'a', durability: 'memory' })
    expect(await wallet.debit(30, { key: 'a', durability: 'memory' })).toEqual({ ...receipt, replayed: true })
    let answered = false
    const ledger = wallet.debit(30, { key: 'a' }).finally(() => {
      answered = true
    })
    // Longer than everything takes that does not wait for Postgres.
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(answered).toBe(false)
    proxy.behave()
    expect(await ledger).toEqual({ ...receipt, replayed: true, durability: 'ledger' })
    expect(await wallet.get()).toMatchObject({ available: 70, seq: 3 })
  })

  it('lets another process go on with a session that is not in the journal yet', async () => {
    const wallet = await memoryWallet()
    const other = await Holdfast.connect({ redis: redisUrl, postgres: database, ...CALM })
    proxy.hold()
    await wallet.meter({ by: 'units', rate: 1, reserve: 50, key: 'chat', durability: 'memory' })
    const session = other.wallet(wallet.id).sessionRef('chat')
    expect(await session.tick({ total: 41 })).toMatchObject({
      charged: 41,
      reserved: 100,
      receipt: { durability: 'ledger' },
    })
    proxy.behave()
    expect(await session.end({ total: 60 })).toMatchObject({ charged: 60, receipt: { available: 40, reserved: 0 } })
    await other.close()
  })

  it('waits with a "no" that rests on what is only in memory', async () => {
    const wallet = await memoryWallet()
    proxy.hold()
    await wallet.debit(80, { key: 'a', durability: 'memory' })
    let answered = false
    const refused = refusal(wallet.debit(80, { key: 'b', durability: 'memory' })).finally(() => {
      answered = true
    })
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(answered).toBe(false)
    proxy.behave()
    expect(await refused).toMatchObject({ code: 'insufficient_funds', available: 20 })
  })

  it('refunds a charge that the journal does not have yet, once it has it', async () => {
    const wallet = await memoryWallet()
    for (let round = 0; round < 10; round += 1) {
      const { entry } = await wallet.debit(5, { key: `d${round}`, durability: 'memory' })
      const refund = await wallet.refund(entry.seq, 5, { key: `r${round}`, durability: 'memory' })
      expect(refund).toMatchObject({ available: 100, durability: 'ledger' })
    }
  })

  it('waits, and does not ask without end, for the settle that a refund has to be measured against', async () => {
    let asked = 0
    const other = await Holdfast.connect({
      redis: redisUrl,
      postgres: database,
      ...CALM,
      postgresOptions: { lockTimeoutMs: 20_000 },
      telemetry: {
        count: (_metric, labels) => {
          if (labels?.answer === 'facts') asked += 1
        },
      },
    })
    const wallet = other.wallet((await memoryWallet()).id)
    const hold = await wallet.hold(50, { key: 'h', ttl: 3_600_000 })
    const { entry } = await hold.capture(20, { key: 'c' })
    // Somebody keeps the row: it can be read, and nothing be appended.
    const keeper = new pg.Client(database)
    await keeper.connect()
    await keeper.query('BEGIN')
    await keeper.query('SELECT FROM holdfast.wallets WHERE id = $1 FOR UPDATE', [wallet.id])
    await hold.settle(30, { key: 's', durability: 'memory' })
    const refund = wallet.refund(entry.seq, 10, { key: 'r' })
    await until(() => asked > 0)
    await new Promise((resolve) => setTimeout(resolve, 500))
    await keeper.end()
    expect(await refund).toMatchObject({ available: 80, reserved: 0 })
    expect(asked).toBeGreaterThan(0)
    expect(asked).toBeLessThan(50)
    await other.close()
  })

  it('refunds a charge that only another process has on its way', async () => {
    const wallet = await memoryWallet()
    const other = await startDirect()
    try {
      proxy.hold()
      const { entry } = await wallet.debit(30, { key: 'd', durability: 'memory' })
      expect(await other.wallet(wallet.id).refund(entry.seq, 30, { key: 'r' })).toMatchObject({ available: 100 })
    } finally {
      proxy.behave()
      await other.close()
    }
  })

  it('shows what is decided to those who ask for it, and what is committed to the others', async () => {
    const wallet = await memoryWallet()
    const pool = await startDirect()
    try {
      const direct = pool.wallet(wallet.id)
      proxy.hold()
      await wallet.debit(30, { key: 'a', durability: 'memory' })
      expect(await direct.get()).toMatchObject({ available: 100, seq: 2 })
      expect(await direct.get({ pending: true })).toMatchObject({
        available: 70,
        seq: 3,
        status: 'active',
        currency: 'usd',
      })
      proxy.behave()
      await until(async () => (await direct.get())?.seq === 3)
    } finally {
      proxy.behave()
      await pool.close()
    }
  })

  it('is the default of an instance that asks for it', async () => {
    const other = await Holdfast.connect({
      redis: redisUrl,
      postgres: database,
      durability: 'memory',
      ...CALM,
    })
    const wallet = other.wallet('by default')
    await wallet.open({ currency: 'usd' })
    expect(await wallet.credit(1, { key: 'a' })).toMatchObject({ durability: 'memory' })
    expect(await wallet.credit(1, { key: 'b', durability: 'ledger' })).toMatchObject({ durability: 'ledger' })
    await other.close()
  })

  it('has committed what it acknowledged when it is closed', async () => {
    const other = await Holdfast.connect({ redis: redisUrl, postgres: database, ...CALM })
    const wallet = other.wallet('closing')
    await wallet.open({ currency: 'usd' })
    await wallet.credit(1, { key: 'first', durability: 'memory' })
    const credits = Array.from({ length: 50 }, (_, i) => wallet.credit(1, { key: `${i}`, durability: 'memory' }))
    await Promise.all(credits)
    await other.close()
    expect(await hf.wallet('closing').get()).toMatchObject({ available: 51, seq: 51 })
  })

  it('leaves a wallet without a Postgres path while Redis is away: only Redis knows what is pending', async () => {
    const wallet = await memoryWallet()
    const without = await Holdfast.connect({ redis: NO_REDIS, postgres: database, ...CALM })
    try {
      const same = without.wallet(wallet.id)
      expect(await refusal(same.debit(1, { key: 'a' }))).toMatchObject({ code: 'unavailable', retryable: true })
      const fresh = without.wallet('never from memory')
      await fresh.open({ currency: 'usd' })
      // Nothing is pending there, so it gets what is better than what it asked for, and is told.
      expect(await fresh.credit(1, { key: 'a', durability: 'memory' })).toMatchObject({ durability: 'ledger' })
    } finally {
      await without.close()
    }
  })
})

const startDirect = () => Holdfast.connect({ redis: redisUrl, postgres: database, ...CALM })
