import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { Holdfast, type Wallet } from '../../src/index.js'
import { until } from '../api/support/paths.js'
import { type FaultyProxy, startProxy } from '../redis/support/proxy.js'
import { judge } from './support/judge.js'
import type { AskedTransfer } from './support/operations.js'
import { type Worker, Workers } from './support/workers.js'

/** Nobody comes by himself, and nobody is impatient: a machine that stands still for a moment is none of the faults here. */
const QUIET = {
  timeout: 25_000,
  engine: { sweepEveryMs: 600_000, transferHoldWithinMs: 20_000, transferGraceMs: 40_000 },
  redisOptions: { commandTimeoutMs: 20_000 },
}

/**
 *     worker ──────────▶ Redis        the test's own engine goes past the proxy
 *        └──▶ proxy ──▶ Postgres
 */
let workers: Workers
let direct: { redis: string; postgres: string }
let proxy: FaultyProxy
let pool: pg.Pool
let hf: Holdfast
let worker: Worker
let from: Wallet
let to: Wallet
let asked: AskedTransfer
let count = 0

beforeAll(async () => {
  workers = await Workers.prepare()
  direct = { redis: await freshRedis(), postgres: await freshDatabase() }
  proxy = await startProxy(Number(new URL(direct.postgres).port))
  hf = await Holdfast.connect({ ...direct, ...QUIET })
  pool = new pg.Pool({ connectionString: direct.postgres, max: 1 })
})
afterAll(async () => {
  await workers.stop()
  await proxy.close()
  await hf.close()
  await pool.end()
})

beforeEach(async () => {
  count += 1
  from = hf.wallet(`from-${count}`)
  to = hf.wallet(`to-${count}`)
  for (const wallet of [from, to]) await wallet.open({ currency: 'usd' })
  await from.credit(1_000, { key: 'in' })
  asked = { from: from.id, to: to.id, amount: 300, fee: 20, key: 't' }
  worker = await workers.start(`worker-${count}`, {
    redis: direct.redis,
    postgres: Object.assign(new URL(direct.postgres), { port: String(proxy.port) }).href,
    ...QUIET,
  })
})

const openIntents = async () => (await pool.query('SELECT FROM holdfast.transfers')).rows.length

/** Somebody who looks after what others left behind, at once. How that ended: more often than once, if the note of it takes its time. */
async function recover(): Promise<string[]> {
  const endings = new Set<string>()
  const sweeper = await Holdfast.connect({
    ...direct,
    engine: { sweepEveryMs: 20, transferHoldWithinMs: 50, transferGraceMs: 100 },
    telemetry: {
      count: (_, labels) => {
        if (labels?.what?.startsWith('transfer')) endings.add(labels.what)
      },
    },
  })
  await until(async () => (await openIntents()) === 0)
  await sweeper.close()
  return [...endings]
}

async function died(): Promise<void> {
  await worker.kill()
  proxy.cut()
  proxy.behave()
}

const again = () => hf.transfer(asked.from, asked.to, asked.amount, { fee: asked.fee, key: asked.key })

async function checkDone(): Promise<void> {
  expect(await from.get()).toMatchObject({ available: 680, reserved: 0 })
  expect(await to.get()).toMatchObject({ available: 300, reserved: 0, seq: 1 })
  await judge(direct.postgres, [])
}

/** What stands in the statement that files a step: the words of the machine. */
const STEPS: [step: string, words: string][] = [
  ['hold', 'hold 320 '],
  ['credit', 'credit 300'],
  ['fee', 'capture 20 '],
  ['settle', 'settle 320 '],
]

describe('a process that is killed in the middle of a transfer', () => {
  it.each(STEPS)('when its %s is decided and not in the journal, has it finished by others', async (_, words) => {
    const reached = proxy.holdAt(words)
    worker.order({ type: 'transfer', transfer: asked })
    await reached
    await died()
    expect(await recover()).toEqual(['transfer_finished'])
    await checkDone()
    expect(await again()).toMatchObject({ replayed: true, from: { available: 680 }, to: { available: 300 } })
    await checkDone()
  })

  it.each(STEPS)(
    'when its %s is in the journal and it does not know yet, has it finished by others',
    async (_, words) => {
      const reached = proxy.cutReplyTo(words).then(() => proxy.hold())
      worker.order({ type: 'transfer', transfer: asked })
      await reached
      await died()
      expect(await recover()).toEqual(['transfer_finished'])
      await checkDone()
      expect(await again()).toMatchObject({ replayed: true })
      await checkDone()
    },
  )

  it.each(STEPS)('when its %s is in the journal, has it finished by its caller elsewhere', async (_, words) => {
    const reached = proxy.cutReplyTo(words).then(() => proxy.hold())
    worker.order({ type: 'transfer', transfer: asked })
    await reached
    await died()
    expect(await again()).toMatchObject({ replayed: true, from: { available: 680 }, to: { available: 300 } })
    await checkDone()
    await until(async () => (await openIntents()) === 0)
  })

  it('before it is written down, has done nothing', async () => {
    const reached = proxy.holdAt('holdfast_beginTransfers')
    worker.order({ type: 'transfer', transfer: asked })
    await reached
    await died()
    expect(await openIntents()).toBe(0)
    expect(await again()).toMatchObject({ replayed: false })
    await checkDone()
  })

  it('when it is written down and no more, has it forgotten; its caller can come again', async () => {
    const reached = proxy.cutReplyTo('holdfast_beginTransfers').then(() => proxy.hold())
    worker.order({ type: 'transfer', transfer: asked })
    await reached
    await died()
    // That of the test before may have to be removed first.
    await until(async () => (await openIntents()) === 1)
    expect(await recover()).toEqual(['transfer_dropped'])
    expect(await from.get()).toMatchObject({ available: 1_000, seq: 1 })
    expect(await again()).toMatchObject({ replayed: false })
    await checkDone()
  })

  it('when all is done but the note of it, leaves only that to be removed', async () => {
    const reached = proxy.holdAt('holdfast_endTransfers')
    worker.order({ type: 'transfer', transfer: asked })
    await reached
    await died()
    await checkDone()
    expect(await recover()).toEqual(['transfer_finished'])
    await checkDone()
  })
})

describe('a transfer that was refused by its destination, by a process that is killed', () => {
  it('when it is decided that it will never arrive, is undone by others', async () => {
    await to.credit(Number.MAX_SAFE_INTEGER - 10, { key: 'full' })
    const reached = proxy.cutReplyTo('"refused').then(() => proxy.hold())
    worker.order({ type: 'transfer', transfer: asked })
    await reached
    await died()
    await to.debit(1_000, { key: 'room' })
    expect(await recover()).toEqual(['transfer_undone'])
    expect(await from.get()).toMatchObject({ available: 1_000, reserved: 0 })
    expect(await to.get()).toMatchObject({ available: Number.MAX_SAFE_INTEGER - 1_010 })
    await expect(again()).rejects.toMatchObject({ code: 'invalid_amount', side: 'to' })
    await judge(direct.postgres, [])
  })
})

describe('a process that sleeps in the middle of a transfer', () => {
  it('wakes up to find it done, and tells so', async () => {
    const reached = proxy.holdAt('credit 300')
    worker.order({ type: 'transfer', transfer: asked })
    await reached
    worker.pause()
    proxy.behave()
    expect(await recover()).toEqual(['transfer_finished'])
    worker.resume()
    await worker.told('done')
    expect(await worker.close()).toBe(0)
    await checkDone()
  })
})
