import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Engine, EngineOptions } from '../../src/engine/index.js'
import { type Begun, type Intent, PostgresIntents } from '../../src/journal/index.js'
import { command } from '../../src/machine/index.js'
import { Keys } from '../../src/redis/index.js'
import { until } from '../api/support/paths.js'
import { Engines, openWallet, ownServers } from './support/engines.js'

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 5), shards: 4 })
const servers = await ownServers()
for (const id of ['from', 'to']) await openWallet(servers.journal, keys.of(id), id)

/** Hears nothing of Postgres until it is let go. */
class SilentIntents extends PostgresIntents {
  /** What was asked in each call. */
  readonly begun: string[][] = []
  go = (): void => {}
  readonly #gone = new Promise<void>((resolve) => {
    this.go = resolve
  })

  override async begin(intents: readonly Intent[]): Promise<Begun[]> {
    this.begun.push(intents.map(({ key }) => key))
    await this.#gone
    return super.begin(intents)
  }
}

let engines: Engines
let intents: SilentIntents
let circuit: string[]

beforeEach(() => {
  engines = new Engines(keys)
  intents = new SilentIntents(servers.postgres)
  circuit = []
})
afterEach(async () => {
  intents.go()
  await engines.close()
})

function startEngine(options: Partial<EngineOptions>): Engine {
  const { redisUrl, postgres } = servers
  const telemetry = {
    count: (name: string, labels?: Record<string, string>) => {
      if (name === 'holdfast_circuit_changes_total' && labels?.dependency === 'postgres') circuit.push(`${labels.to}`)
    },
  }
  const rest = { sweepEveryMs: 600_000, transferHoldWithinMs: 30_000, postgresPatienceMs: 60_000, timeoutMs: 60_000 }
  return engines.start({ redisUrl, postgres, intents, telemetry, options: { ...rest, ...options } }).engine
}

function transfer(engine: Engine, key: string, options: { timeoutMs?: number; signal?: AbortSignal } = {}) {
  const rest = { amount: 1, fee: 0, counter: 'revenue', metadata: '' }
  const intent: Intent = { tenant: 'test', source: keys.ref('from'), target: keys.ref('to'), key, ...rest }
  const heard = engine.transfer(intent, options).then(
    () => 'done',
    ({ code }) => code as string,
  )
  return heard
}

it('counts transfers from the door on, and each of them once', async () => {
  const engine = startEngine({ attemptsMax: 3 })
  await engine.submit(keys.of('from'), command({ kind: 'credit', key: 'in', amount: 100 }), { memory: false })
  const heard = ['a', 'b', 'c'].map((key) => transfer(engine, key))
  expect(engine.load.attempts).toBe(3)
  expect(await transfer(engine, 'd')).toBe('unavailable')
  const credit = engine.submit(keys.of('from'), command({ kind: 'credit', key: 'no', amount: 1 }), { memory: false })
  await expect(credit).rejects.toMatchObject({ code: 'unavailable', limit: 3 })
  let most = 0
  const watching = setInterval(() => {
    most = Math.max(most, engine.load.attempts)
  })
  intents.go()
  expect(await Promise.all(heard)).toEqual(['done', 'done', 'done'])
  clearInterval(watching)
  expect(most).toBeLessThanOrEqual(3)
  await until(() => engine.load.attempts === 0)
  expect(await transfer(engine, 'd')).toBe('done')
})

it('writes nothing down for callers who have gone before it was their turn', async () => {
  const engine = startEngine({})
  const first = transfer(engine, 'first')
  await until(() => intents.begun.length === 1)
  const late = Array.from({ length: 20 }, (_, n) => transfer(engine, `late-${n}`, { timeoutMs: 50 }))
  const caller = new AbortController()
  const aborted = transfer(engine, 'aborted', { signal: caller.signal })
  caller.abort()
  const patient = transfer(engine, 'patient')
  expect(new Set(await Promise.all(late))).toEqual(new Set(['timeout']))
  expect(await aborted).toBe('aborted')
  // They are at nobody's expense, and still there: until then nobody comes in their place.
  expect(engine.load.attempts).toBe(23)
  intents.go()
  expect(await Promise.all([first, patient])).toEqual(['done', 'done'])
  expect(intents.begun).toEqual([['first'], ['patient']])
  await until(() => engine.load.attempts === 0)
})

it('is closed when the callers have gone, whatever waits behind a question that was not answered', async () => {
  const engine = startEngine({})
  void transfer(engine, 'asked', { timeoutMs: 50 })
  await until(() => intents.begun.length === 1)
  // Several calls, one after another.
  const heard = Array.from({ length: 1_600 }, (_, n) => transfer(engine, `${n}`, { timeoutMs: 50 }))
  await Promise.all(heard)
  const closed = engine.close()
  intents.go()
  await closed
  expect(intents.begun).toEqual([['asked']])
})

it('takes Postgres for away when it does not answer, and lets nobody wait for that', async () => {
  const engine = startEngine({ postgresPatienceMs: 200 })
  void transfer(engine, 'asked')
  await until(() => intents.begun.length === 1)
  await until(() => circuit.includes('open'))
  // It is asked whether it is back, and that works: nobody was silent but the one.
  await until(() => circuit.includes('closed'))
  expect(engine.health.postgres).toBe(true)
})
