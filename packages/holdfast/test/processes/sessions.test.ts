import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { type ConnectOptions, Holdfast, type Wallet } from '../../src/index.js'
import { until } from '../api/support/paths.js'
import { judge } from './support/judge.js'
import { type Worker, Workers } from './support/workers.js'

const RATE = 3
/** Ten units at a time: a line to cross every ten. */
const TERMS = { by: 'units', rate: RATE, reserve: 10 } as const
const MONEY = 1_000_000

let workers: Workers
let hf: Holdfast
let servers: { redis: string; postgres: string }
let wallet: Wallet
let count = 0

beforeAll(async () => {
  workers = await Workers.prepare()
  servers = { redis: await freshRedis(), postgres: await freshDatabase() }
  hf = await Holdfast.connect({ ...servers, engine: { sweepEveryMs: 50, dueGraceMs: 0 } })
})
afterAll(async () => {
  await workers.stop()
  await hf.close()
})

beforeEach(async () => {
  count += 1
  wallet = hf.wallet(`wallet-${count}`)
  await wallet.open({ currency: 'usd' })
  await wallet.credit(MONEY, { key: 'in' })
})

function start(): Promise<Worker> {
  const options: ConnectOptions = { ...servers, engine: { sweepEveryMs: 600_000 } }
  return workers.start(`worker-${count}`, options)
}

/** As the journal tells it: each extension a whole stretch, and each at its line, none twice. */
async function checkExtensions(): Promise<void> {
  let reserved = 0
  let charged = 0
  const stretch = TERMS.reserve * RATE
  for (let after = 0; ; ) {
    const entries = await wallet.entries({ after, limit: 1_000 })
    for (const { kind, availableDelta, reservedDelta } of entries) {
      if (kind !== 'hold' && kind !== 'tick') continue
      reserved -= availableDelta
      charged -= availableDelta + reservedDelta
      expect(reserved).toBe(stretch * Math.max(1, Math.ceil(charged / (0.8 * stretch))))
    }
    if (entries.length === 0) return
    after = entries.at(-1)?.seq as number
  }
}

describe('a process that is killed in mid-session', () => {
  it('has charged no more than it delivered, and the rest comes back', async () => {
    const worker = await start()
    worker.order({ type: 'stream', wallet: wallet.id, key: 'chat', terms: { ...TERMS, heartbeat: 5_000 } })
    await until(() => worker.units >= 60)
    await worker.kill()
    expect((await wallet.get())?.reserved).toBeGreaterThan(0)
    await until(async () => (await wallet.get())?.reserved === 0)
    const session = await wallet.sessionRef('chat').get()
    expect(session).toMatchObject({ ended: true, endedBy: 'expiry', left: 0 })
    expect(session.charged % RATE).toBe(0)
    expect(session.charged).toBeGreaterThan(0)
    expect(session.charged).toBeLessThanOrEqual(worker.units * RATE)
    expect(await wallet.get()).toMatchObject({ available: MONEY - session.charged })
    await checkExtensions()
    await judge(servers.postgres, workers.history)
  })

  it('is followed by another that goes on, and no unit is charged twice', async () => {
    const worker = await start()
    worker.order({ type: 'stream', wallet: wallet.id, key: 'chat', terms: TERMS })
    await until(() => worker.units >= 60)
    await worker.kill()
    const session = wallet.sessionRef('chat')
    for (const more of [0, 5, 5, 9]) {
      expect(await session.tick({ total: worker.units + more })).toMatchObject({
        charged: (worker.units + more) * RATE,
      })
    }
    const total = worker.units + 10
    expect(await session.end({ total })).toMatchObject({ charged: total * RATE, endedBy: 'end' })
    expect(await wallet.get()).toMatchObject({ available: MONEY - total * RATE, reserved: 0 })
    await checkExtensions()
    await judge(servers.postgres, workers.history)
  })
})

describe('processes that tell one session of the same units', () => {
  it('charge each once, though one of them is killed and Redis forgets', async () => {
    const session = await wallet.meter({ ...TERMS, key: 'chat' })
    const [first, second, third] = await Promise.all([start(), start(), start()])
    const totals = Array.from({ length: 150 }, (_, n) => n + 1)
    for (const worker of [first, second, third]) {
      worker.order({ type: 'ticks', wallet: wallet.id, session: 'chat', totals })
    }
    await until(() => first.units >= 40)
    await first.kill()
    await until(() => second.units >= 80)
    const redis = new Redis(servers.redis)
    await redis.flushdb()
    redis.disconnect()
    await Promise.all([second.told('done'), third.told('done')])
    expect(await session.get()).toMatchObject({ charged: 150 * RATE, ended: false })
    expect(await session.end({ total: 151 })).toMatchObject({ charged: 151 * RATE })
    expect(await wallet.get()).toMatchObject({ available: MONEY - 151 * RATE, reserved: 0 })
    await checkExtensions()
    for (const worker of [second, third]) expect(await worker.close()).toBe(0)
    await judge(servers.postgres, workers.history)
  }, 90_000)
})
