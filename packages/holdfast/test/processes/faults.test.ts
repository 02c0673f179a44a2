import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { Holdfast, type Wallet } from '../../src/index.js'
import { walletDecide } from '../../src/redis/scripts.generated.js'
import { until } from '../api/support/paths.js'
import { type FaultyProxy, startProxy } from '../redis/support/proxy.js'
import { judge } from './support/judge.js'
import { type Operation, operation } from './support/operations.js'
import { type Worker, Workers } from './support/workers.js'

/** Nobody comes by himself, and nobody is impatient: a machine that stands still for a moment is none of the faults here. */
const QUIET = {
  timeout: 25_000,
  engine: { sweepEveryMs: 600_000, decideWithinMs: 4_000, postgresPatienceMs: 60_000 },
  redisOptions: { commandTimeoutMs: 20_000 },
}

/**
 *     worker ──▶ proxy ──▶ Redis        the test's own engine goes past the proxies
 *        └─────▶ proxy ──▶ Postgres
 */
let workers: Workers
let hf: Holdfast
let direct: { redis: string; postgres: string }
let redisProxy: FaultyProxy
let postgresProxy: FaultyProxy
let wallet: Wallet
let worker: Worker
let count = 0

beforeAll(async () => {
  workers = await Workers.prepare()
  direct = { redis: await freshRedis(), postgres: await freshDatabase() }
  redisProxy = await startProxy(Number(new URL(direct.redis).port))
  postgresProxy = await startProxy(Number(new URL(direct.postgres).port))
  hf = await Holdfast.connect({ ...direct, ...QUIET })
})
afterAll(async () => {
  await workers.stop()
  await Promise.all([redisProxy.close(), postgresProxy.close()])
  await hf.close()
})

/** A wallet with 100 in it, and a worker that has it at hand and sweeps nothing. */
beforeEach(async () => {
  count += 1
  wallet = hf.wallet(`wallet-${count}`)
  await wallet.open({ currency: 'usd' })
  worker = await workers.start(`worker-${count}`, {
    redis: behind(redisProxy, direct.redis),
    postgres: behind(postgresProxy, direct.postgres),
    ...QUIET,
  })
  await answered(order({ kind: 'credit', key: 'in', amount: 100 }))
})

const behind = (proxy: FaultyProxy, url: string) => Object.assign(new URL(url), { port: String(proxy.port) }).href

function order(given: Pick<Operation, 'kind' | 'key'> & Partial<Operation>): Operation {
  const asked = operation({ wallet: wallet.id, ...given })
  worker.order({ type: 'one', operation: asked })
  return asked
}

const outcomeOf = ({ wallet, key }: Operation) =>
  workers.history.find((seen) => seen.operation.wallet === wallet && seen.operation.key === key)?.outcome

async function answered(asked: Operation) {
  await until(() => outcomeOf(asked) != null)
  return outcomeOf(asked)
}

/** Decided in Redis, and not in the journal: the worker is between the two. */
async function decided(seq: number): Promise<void> {
  await until(async () => (await wallet.get({ pending: true }))?.seq === seq)
  expect(await wallet.get()).toMatchObject({ seq: seq - 1 })
}

describe('a reply that is lost after the script ran', () => {
  it('leads to the one answer that there is', async () => {
    const lost = redisProxy.cutReplyTo(walletDecide.sha1)
    const debit = order({ kind: 'debit', key: 'out', amount: 30 })
    await lost
    expect(await answered(debit)).toMatchObject({ type: 'yes', seq: 2, available: 70 })
    expect(await worker.close()).toBe(0)
    await judge(direct.postgres, workers.history)
    expect(await wallet.get({ pending: true })).toMatchObject({ available: 70, seq: 2 })
  })

  it('of a refusal as well', async () => {
    const lost = redisProxy.cutReplyTo(walletDecide.sha1)
    const debit = order({ kind: 'debit', key: 'out', amount: 101 })
    await lost
    expect(await answered(debit)).toEqual({ type: 'no', code: 'insufficient_funds' })
    expect(await worker.close()).toBe(0)
  })
})

describe('an append whose answer is lost', () => {
  it('is made again, and is there once', async () => {
    const lost = postgresProxy.cutReplyTo('holdfast_append')
    const debit = order({ kind: 'debit', key: 'out', amount: 30 })
    await lost
    expect(await answered(debit)).toMatchObject({ type: 'yes', seq: 2, available: 70 })
    expect(await worker.close()).toBe(0)
    await judge(direct.postgres, workers.history)
  })
})

describe('a process that is killed between decision and append', () => {
  it('has its entry appended by the next writer', async () => {
    postgresProxy.hold()
    order({ kind: 'debit', key: 'out', amount: 30 })
    await decided(2)
    await worker.kill()
    postgresProxy.cut()
    postgresProxy.behave()
    expect(await wallet.credit(5, { key: 'next' })).toMatchObject({ available: 75, entry: { seq: 3 } })
    // Its caller comes again, somewhere else.
    expect(await wallet.debit(30, { key: 'out' })).toMatchObject({ replayed: true, available: 70, entry: { seq: 2 } })
    await judge(direct.postgres, workers.history)
  })

  it('has its caller answered by another process, without anybody else writing', async () => {
    postgresProxy.hold()
    order({ kind: 'debit', key: 'out', amount: 30 })
    await decided(2)
    await worker.kill()
    postgresProxy.cut()
    postgresProxy.behave()
    const [first, again] = await Promise.all([
      wallet.debit(30, { key: 'out' }),
      wallet.debit(30, { key: 'out', retry: true }),
    ])
    for (const receipt of [first, again])
      expect(receipt).toMatchObject({ replayed: true, durability: 'ledger', available: 70 })
    await judge(direct.postgres, workers.history)
  })

  it('has its hold appended and expired by a sweeper when nobody comes', async () => {
    postgresProxy.hold()
    order({ kind: 'hold', key: 'call', hold: 'call', amount: 30, ttl: 200 })
    await decided(2)
    await worker.kill()
    postgresProxy.cut()
    postgresProxy.behave()
    const sweeper = await Holdfast.connect({ ...direct, engine: { sweepEveryMs: 20 } })
    await until(async () => (await wallet.get())?.seq === 3)
    await sweeper.close()
    expect((await wallet.entries()).map(({ kind }) => kind)).toEqual(['credit', 'hold', 'expire'])
    expect(await wallet.get({ pending: true })).toMatchObject({ available: 100, reserved: 0 })
    await judge(direct.postgres, workers.history)
  })

  it('has its refusals forgotten: what it did not tell may be told otherwise', async () => {
    postgresProxy.hold()
    order({ kind: 'debit', key: 'out', amount: 101 })
    await until(() =>
      workers.history.some((seen) => seen.operation.wallet === wallet.id && seen.operation.key === 'out'),
    )
    await worker.kill()
    postgresProxy.cut()
    postgresProxy.behave()
    await wallet.credit(1, { key: 'next' })
    expect(await wallet.debit(101, { key: 'out' })).toMatchObject({ replayed: false, available: 0 })
    await judge(direct.postgres, workers.history)
  })
})

describe('a process that sleeps between decision and append', () => {
  it('wakes up to find its entry there, and tells the truth', async () => {
    postgresProxy.hold()
    const debit = order({ kind: 'debit', key: 'out', amount: 30 })
    await decided(2)
    worker.pause()
    expect(await wallet.debit(60, { key: 'other' })).toMatchObject({ available: 10, entry: { seq: 3 } })
    postgresProxy.behave()
    worker.resume()
    expect(await answered(debit)).toMatchObject({ type: 'yes', seq: 2, available: 70, replayed: false })
    expect(await worker.close()).toBe(0)
    await judge(direct.postgres, workers.history)
  })

  it('wakes up after Redis forgot it all, and decides anew on what there is', async () => {
    postgresProxy.hold()
    const debit = order({ kind: 'debit', key: 'out', amount: 30 })
    await decided(2)
    worker.pause()
    await forgetWallet()
    // On a raised epoch: what was decided before can't be appended any more.
    expect(await wallet.debit(80, { key: 'other' })).toMatchObject({ available: 20, entry: { seq: 2 } })
    postgresProxy.behave()
    worker.resume()
    expect(await answered(debit)).toEqual({ type: 'no', code: 'insufficient_funds' })
    expect(await worker.close()).toBe(0)
    await judge(direct.postgres, workers.history)
  })
})

describe('two processes that take turns on one wallet', () => {
  it('see each other’s work at every step', async () => {
    for (let round = 1; round <= 20; round += 1) {
      const outcome = await answered(order({ kind: 'debit', key: `w${round}`, amount: 1 }))
      expect(outcome).toMatchObject({ type: 'yes', seq: 2 * round, available: 99, replayed: false })
      expect(await wallet.credit(1, { key: `t${round}` })).toMatchObject({
        available: 100,
        entry: { seq: 2 * round + 1 },
      })
    }
    expect(await worker.close()).toBe(0)
    await judge(direct.postgres, workers.history)
  })
})

describe('a process that is closed', () => {
  it('ends by itself although Postgres is away and something waits for it', async () => {
    const asked = operation({ wallet: wallet.id, kind: 'debit', key: 'out', amount: 30 })
    const impatient = await workers.start('impatient', {
      redis: behind(redisProxy, direct.redis),
      postgres: behind(postgresProxy, direct.postgres),
      ...QUIET,
      timeout: 3_000,
    })
    impatient.order({ type: 'one', operation: { ...asked, key: 'first' }, durability: 'memory' })
    await until(async () => (await wallet.get())?.seq === 2)
    postgresProxy.refuse()
    impatient.order({ type: 'one', operation: asked, durability: 'memory' })
    expect(await answered(asked)).toMatchObject({ type: 'yes', seq: 3 })
    const started = Date.now()
    expect(await impatient.close()).toBe(0)
    expect(Date.now() - started).toBeLessThan(9_000)
    postgresProxy.behave()
    // Redis kept it.
    expect(await wallet.credit(1, { key: 'next' })).toMatchObject({ entry: { seq: 4 } })
    await worker.kill()
    await judge(direct.postgres, workers.history)
  })
})

async function forgetWallet(): Promise<void> {
  const redis = new Redis(direct.redis)
  const keys = await redis.keys('*:wallet:*')
  if (keys.length > 0) await redis.del(...keys)
  redis.disconnect()
}
