import { describe, expect, it } from 'vitest'
import type { EngineOptions } from '../../packages/holdfast/src/engine/index.js'
import { command } from '../../packages/holdfast/src/machine/index.js'
import { openRequest } from '../openings.js'
import { keys, Process, type Weather } from '../process.js'
import { Machines, Servers } from '../servers.js'
import { World } from '../world.js'

/** Callers who come at a steady pace and do not wait for each other, over a network without faults: how many are answered in time? */
const SECONDS = 8
const LOADED_AFTER = 2
const BATCH = 8
const TIMEOUT_MS = 1_000
const LOCK_WAIT_MS = 250
const CALM: Weather = { lossy: 0, slow: 0, contended: 0, evicting: 0 }

interface Crowd {
  readonly perSecond: number
  readonly wallets?: number
  /** How long a call and its answer are on their way, ms, on average: to Redis, and to Postgres. */
  readonly roundTripMs: number
  /** How much longer Postgres takes for so many entries. */
  readonly appendMs?: (entries: number) => number
  readonly options?: Partial<EngineOptions>
  readonly withoutRedis?: boolean
  /** Of so many wallets, the first ones, somebody keeps the rows all the while. */
  readonly locked?: number
  /** In the middle of it. */
  readonly meanwhile?: (process: Process, servers: Servers) => void
}

interface Told {
  /** In each second, once all wallets are loaded: how many of those who came in it were told yes. */
  readonly yes: readonly number[]
  /** Script calls that were under way at once. */
  readonly callsMost: number
}

async function come({
  perSecond,
  wallets = 16,
  roundTripMs,
  appendMs,
  options,
  withoutRedis = false,
  locked = 0,
  meanwhile,
}: Crowd): Promise<Told> {
  const world = new World(1, false)
  const servers = await Servers.start(world, new Machines())
  const names = Array.from({ length: wallets }, (_, n) => `w${n}`)
  for (const name of names) servers.postgres.database.open(openRequest(name))
  const process = new Process(
    'process',
    world,
    servers,
    CALM,
    {},
    {
      options: { decideBatchMax: BATCH, timeoutMs: TIMEOUT_MS, sweepEveryMs: 600_000, ...options },
      distance: roundTripMs / 0.7,
    },
  )
  process.redisCut = withoutRedis
  let [calls, callsMost] = [0, 0]
  const beganAt = world.now
  const decide = process.sequencer.decide.bind(process.sequencer)
  process.sequencer.decide = async (batch) => {
    calls += 1
    callsMost = Math.max(callsMost, calls)
    return decide(batch).finally(() => {
      calls -= 1
    })
  }
  if (appendMs) {
    const append = process.journal.append.bind(process.journal)
    process.journal.append = async (filed) => {
      await new Promise<void>((resolve) => world.plan(appendMs(filed.length), resolve))
      return append(filed)
    }
  }
  const refsLocked = new Set(names.slice(0, locked).map((name) => keys.ref(name)))
  const takeOver = process.journal.takeOver.bind(process.journal)
  process.journal.takeOver = async (ref, how) => {
    if (!refsLocked.has(ref)) return takeOver(ref, how)
    if (how?.patient) await new Promise<void>((resolve) => world.plan(LOCK_WAIT_MS, resolve))
    return 'locked'
  }
  const yes = Array.from({ length: SECONDS }, () => 0)
  for (let n = 0; n < perSecond * SECONDS; n += 1) {
    const second = Math.floor(n / perSecond)
    world.plan((n * 1_000) / perSecond, () => {
      const credit = command({ kind: 'credit', key: `${n}`, amount: 1 })
      process.engine.submit(keys.of(names[n % wallets] as string), credit, { memory: false }).then(
        () => {
          yes[second] = (yes[second] as number) + 1
        },
        () => {},
      )
    })
  }
  if (meanwhile) world.plan((SECONDS * 1_000) / 2, () => meanwhile(process, servers))
  await world.run(beganAt + SECONDS * 1_000 + TIMEOUT_MS, () => false)
  return { yes: yes.slice(LOADED_AFTER), callsMost }
}

const mean = (counts: readonly number[]): number => counts.reduce((sum, count) => sum + count, 0) / counts.length

describe('when more is asked than can be decided in time', () => {
  it.each([20, 200])(
    'as many are answered as can be, %i ms away',
    async (roundTripMs) => {
      const options = { decideCallsMax: 2 }
      const canDo = (2 * BATCH * 1_000) / roundTripMs
      const { yes } = await come({ perSecond: 3 * canDo, roundTripMs, options })
      for (const count of yes) expect(count).toBeGreaterThan(canDo / 2)
    },
    60_000,
  )
})

describe('when more is asked than Postgres can append in time', () => {
  const full = 100
  const crowd = { wallets: 400, roundTripMs: 2, options: { decideBatchMax: 32, appendBatchMax: full } }
  const unevenly = (...ms: number[]) => {
    let n = 0
    return () => ms[n++ % ms.length] as number
  }

  it.each([
    ['a statement takes long, whatever is in it', () => 300],
    ['every entry takes long', (entries: number) => 5 + 3 * entries],
    ['statements take unevenly long', unevenly(100, 500)],
  ])(
    'as many are answered as can be: %s',
    async (_, appendMs) => {
      const canDo = (full * 1_000) / 300
      const { yes } = await come({ ...crowd, perSecond: Math.floor(3 * canDo), appendMs })
      expect(mean(yes)).toBeGreaterThan(0.9 * canDo)
      // In one second there may be a slow statement more.
      for (const count of yes) expect(count).toBeGreaterThan(0.6 * canDo)
    },
    60_000,
  )

  it('nothing is begun that takes several steps and can not be finished in time; and who looks after wallets is let in', async () => {
    let told: Promise<unknown[]> | undefined
    let begun: number | undefined
    const meanwhile = ({ engine }: Process, { postgres }: Servers): void => {
      const [source, target] = [keys.ref('w1'), keys.ref('w2')]
      const intent = { tenant: keys.tenant, source, target, key: 't', amount: 1, fee: 0, counter: 'x', metadata: '' }
      const transfer = engine.transfer(intent, {}).catch((error) => {
        begun = postgres.database.intents.open.length
        return error
      })
      postgres.database.open(openRequest('idle'))
      const touch = engine.submit(keys.of('idle'), command({ kind: 'touch' }), { memory: false, timeoutMs: 1_000 })
      told = Promise.all([transfer, touch])
    }
    const options = { ...crowd.options, timeoutMs: 10_000 }
    await come({ ...crowd, options, perSecond: 1_000, appendMs: () => 300, meanwhile })
    const [transfer, touch] = (await told) ?? []
    expect(transfer).toMatchObject({ code: 'unavailable', waitMs: expect.any(Number) })
    expect(begun).toBe(0)
    expect(touch).toMatchObject({ durability: 'ledger' })
  }, 60_000)

  it('nobody is turned away who goes with the next statement', async () => {
    const appendMs = () => 300
    const { yes } = await come({ ...crowd, perSecond: 300, appendMs })
    for (const count of yes) expect(count).toBe(300)
  }, 60_000)
})

it('as many of one wallet are answered as can be, when more is asked than the Postgres path can decide in time', async () => {
  const appendMs = 200
  const share = 256
  const canDo = (share * 1_000) / appendMs
  const options = { postgresPathMax: 10_000 }
  const crowd = { wallets: 1, perSecond: 2 * canDo, roundTripMs: 2, appendMs: () => appendMs, options }
  const { yes } = await come({ ...crowd, withoutRedis: true })
  // Once it is known that Redis is away, and how long a batch takes.
  expect(mean(yes.slice(2))).toBeGreaterThan(0.8 * canDo)
}, 60_000)

it('nobody is turned away from the Postgres path because of those who wait for wallets that are set aside', async () => {
  const appendMs = 300
  const canDo = (256 * 1_000) / appendMs
  const options = { postgresPathMax: 10_000 }
  const crowd = { wallets: 7, locked: 6, perSecond: 7_000, roundTripMs: 2, appendMs: () => appendMs, options }
  const { yes } = await come({ ...crowd, withoutRedis: true })
  // As above, and once it is known that those rows are not to be had.
  expect(mean(yes.slice(3))).toBeGreaterThan(0.8 * canDo)
}, 60_000)

describe('a Redis that is far away', () => {
  it('is sent more calls at once, as many as it takes to be kept at work', async () => {
    const roundTripMs = 64
    const two = (2 * BATCH * 1_000) / roundTripMs
    const { yes, callsMost } = await come({ perSecond: 2 * two, roundTripMs })
    for (const count of yes) expect(count).toBe(2 * two)
    expect(callsMost).toBeGreaterThan(4)
    expect(callsMost).toBeLessThanOrEqual(32)
  }, 60_000)

  it('is sent no more than a bounded number of calls', async () => {
    const { callsMost } = await come({ perSecond: 2_000, roundTripMs: 400 })
    expect(callsMost).toBe(32)
  }, 60_000)
})

it('a Redis that is near is sent two calls at once, so that batches are large', async () => {
  const { yes, callsMost } = await come({ perSecond: 1_000, roundTripMs: 2 })
  expect(callsMost).toBe(2)
  for (const count of yes) expect(count).toBe(1_000)
}, 60_000)
