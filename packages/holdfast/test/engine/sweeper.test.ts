import { afterAll, describe, expect, it } from 'vitest'
import type { Outcome } from '../../src/engine/attempt.js'
import type { Circuit } from '../../src/engine/circuit.js'
import { type Context, DEFAULT_OPTIONS } from '../../src/engine/context.js'
import { systemClock } from '../../src/engine/index.js'
import { Sweeper } from '../../src/engine/sweeper.js'
import type { DuePlace, DueWallet, Journal } from '../../src/journal/index.js'
import { command } from '../../src/machine/index.js'
import { Keys, type Place } from '../../src/redis/index.js'
import { until } from '../api/support/paths.js'
import { TestClock } from './support/clock.js'
import { Engines, openWallet, ownServers } from './support/engines.js'

const PAGE = 4
const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 3), shards: 2 })
const engines = new Engines(keys)
const { redisUrl, redis, postgres, journal } = await ownServers()

afterAll(() => engines.close())

const never = new Promise<Outcome>(() => {})
const TOUCHED = { touch: { due: 0, epoch: 1, seq: 1 } } as Outcome

/** A sweeper that sees to no shard, only to what Postgres knows to be due. */
function coldSweeper(
  due: Pick<Journal, 'due' | 'relax'>,
  touch: (place: Place) => Promise<Outcome>,
  clock = new TestClock(),
): Sweeper {
  const context = {
    journal: due,
    clock,
    options: { ...DEFAULT_OPTIONS, claimMax: PAGE, dueGraceMs: 0 },
    telemetry: {},
    postgres: { open: false },
    full: () => false,
    postgresNow: () => systemClock.now(),
  }
  return new Sweeper(context as unknown as Context, {
    shards: 0,
    agendaOf: (shard) => keys.agenda(shard),
    placeOf: (_tenant, ref) => keys.place(ref),
    laneOf: () => expect.unreachable(),
    redisOf: () => expect.unreachable(),
    touch,
  })
}

it('expires many more than a page in one round, after Redis has forgotten all of them', async () => {
  const { engine } = engines.start({ redisUrl, postgres, journal })
  const places = Array.from({ length: 5 * PAGE + 1 }, (_, n) => keys.place(keys.ref(`w${n}`)))
  const ledger = { memory: false }
  for (const [n, place] of places.entries()) {
    await openWallet(journal, place, `w${n}`)
    await engine.submit(place, command({ kind: 'credit', key: 'in', amount: 9 }), ledger)
    await engine.submit(place, command({ kind: 'hold', key: 'h', amount: 9, ttlMs: 1 }), ledger)
  }
  await redis.flushdb()
  await until(async () => (await journal.due(Date.now(), 100, null)).length === places.length)
  // Its time stands still: all of it is one round, however busy the machine.
  const sweeper = coldSweeper(journal, (place) => engine.touch(place))
  expect(await sweeper.sweep()).toBe(true)
  const rows = await journal.read(places.map(({ ref }) => ref))
  expect(rows.map(({ reserved, due }) => ({ reserved, due }))).toEqual(places.map(() => ({ reserved: 0, due: 0 })))
})

/** Wallets that are due, whatever is done about it. */
class DueList {
  readonly refs: string[]
  readonly asked: (DuePlace | null)[] = []

  constructor(length: number) {
    this.refs = Array.from({ length }, (_, n) => keys.ref(`w${n}`))
  }

  async due(_until: number, most: number, after: DuePlace | null): Promise<DueWallet[]> {
    this.asked.push(after)
    const all = this.refs.map((ref, n) => ({ ref, tenant: 'test', due: n + 1, epoch: 1 }))
    return all.filter(({ due }) => due > (after?.due ?? 0)).slice(0, most)
  }

  async relax(): Promise<void> {}
}

describe('a round over what is due', () => {
  it('leaves what takes longer to the next one, which goes on behind it and then begins anew', async () => {
    const list = new DueList(3 * PAGE)
    const clock = new TestClock()
    const touched: string[] = []
    const sweeper = coldSweeper(
      list,
      async ({ ref }) => {
        touched.push(ref)
        clock.pass(150)
        return TOUCHED
      },
      clock,
    )
    await sweeper.sweep()
    expect(touched).toEqual(list.refs.slice(0, 2 * PAGE))
    await sweeper.sweep()
    expect(touched).toEqual(list.refs)
    await sweeper.sweep()
    expect(touched.slice(list.refs.length)).toEqual(list.refs.slice(0, 2 * PAGE))
  })

  it('goes on behind those that fail, and behind one that hangs, which is touched once', async () => {
    const list = new DueList(2 * PAGE + 1)
    const clock = new TestClock()
    const touched: string[] = []
    const hanging = list.refs[1]
    const sweeper = coldSweeper(
      list,
      ({ ref }) => {
        touched.push(ref)
        return ref === hanging ? never : Promise.reject(new Error('not loadable'))
      },
      clock,
    )
    const first = sweeper.sweep()
    await until(() => touched.length === PAGE)
    clock.pass(1_000)
    await first
    await sweeper.sweep()
    expect(touched).toEqual(list.refs)
    await sweeper.sweep()
    expect(touched.slice(list.refs.length)).toEqual(list.refs.filter((ref) => ref !== hanging))
  })

  it('ends when the sweeper is stopped, whatever hangs', async () => {
    const list = new DueList(PAGE)
    const sweeper = coldSweeper(list, () => never)
    const round = sweeper.sweep()
    await until(() => list.asked.length === 1)
    await sweeper.stop()
    await round
    expect(list.asked).toHaveLength(1)
  })
})

/** A sweeper of many shards with empty agendas; `claim` says when it is told so. */
function hotSweeper(
  shards: number,
  due: Pick<Journal, 'due' | 'relax'>,
  claim: (agendaKey: string) => Promise<string[]>,
) {
  const context = {
    journal: due,
    sequencer: { claim },
    clock: new TestClock(),
    options: DEFAULT_OPTIONS,
    telemetry: {},
    full: () => false,
    postgresNow: () => systemClock.now(),
  }
  return new Sweeper(context as unknown as Context, {
    shards,
    agendaOf: (shard) => keys.agenda(shard),
    placeOf: (_tenant, ref) => keys.place(ref),
    laneOf: () => expect.unreachable(),
    redisOf: () => ({ open: false, worked() {}, failedWith() {} }) as unknown as Circuit,
    touch: async () => TOUCHED,
  })
}

describe('a round over the shards', () => {
  const SHARDS = 40
  const agendas = Array.from({ length: SHARDS }, (_, shard) => keys.agenda(shard))

  it('does not keep others waiting for one that is slow, nor what is due elsewhere', async () => {
    const list = new DueList(PAGE)
    const claimed: string[] = []
    let answer = (_names: string[]): void => {}
    const sweeper = hotSweeper(SHARDS, list, (agendaKey) => {
      claimed.push(agendaKey)
      return agendaKey === agendas[0] ? new Promise((resolve) => (answer = resolve)) : Promise.resolve([])
    })
    const round = sweeper.sweep()
    await until(() => claimed.length === SHARDS && list.asked.length > 0)
    expect(claimed).toEqual(agendas)
    answer([])
    expect(await round).toBe(true)
    expect(claimed).toEqual(agendas)
  })

  it('asks Redis for a few at a time, and for none once it is stopped', async () => {
    const waiting: (() => void)[] = []
    const sweeper = hotSweeper(SHARDS, new DueList(0), () => new Promise((resolve) => waiting.push(() => resolve([]))))
    const round = sweeper.sweep()
    await until(() => waiting.length > 0)
    const atOnce = waiting.length
    expect(atOnce).toBeLessThan(SHARDS)
    waiting[0]?.()
    await until(() => waiting.length === atOnce + 1)
    await sweeper.stop()
    for (const answer of waiting) answer()
    await round
    expect(waiting).toHaveLength(atOnce + 1)
  })

  it('tells that one of them failed', async () => {
    const sweeper = hotSweeper(SHARDS, new DueList(0), async (agendaKey) => {
      if (agendaKey === agendas[17]) throw new Error('away')
      return []
    })
    expect(await sweeper.sweep()).toBe(false)
  })
})
