import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freshRedis } from '../../../../test/servers.js'
import { type Command, command } from '../../src/machine/index.js'
import { Keys } from '../../src/redis/index.js'
import type { Answer } from '../../src/sequencer/index.js'
import { Oracle } from '../machine/oracle.js'
import { AcquaintedSequencer } from './support/acquainted.js'
import { runnerOn } from './support/runner.js'

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 7), shards: 1 })
const HEAD = '0'.repeat(40)
const START = 1_600_000_000_000
const ROUNDS = 150

let redis: Redis
let sequencer: AcquaintedSequencer

beforeAll(async () => {
  redis = new Redis(await freshRedis())
  const options = { aheadMaxMs: 0, helpAfterMs: 1_000, idleAfterMs: 60_000, pendingMax: 100, now: () => START }
  sequencer = new AcquaintedSequencer(runnerOn(redis), options)
})
afterAll(() => redis.disconnect())

/** A wallet in Redis and its twin in TypeScript: what Redis decides is decided by both. */
async function install(id: string) {
  const place = keys.place(keys.ref(id))
  const oracle = new Oracle(HEAD)
  const { epoch } = oracle.state
  const state = { ...oracle.state, holds: new Map() }
  await sequencer.install('test', {
    place,
    state,
    memory: false,
    deadline: Date.now() + 60_000,
    clock: 0,
    finalKeys: [],
  })
  /** `acked`: what the journal has. */
  const decideAt = async (acked: number, ...commands: Command[]): Promise<Answer[]> => {
    for (const one of commands) oracle.decide(one, START)
    const { answers } = await sequencer.decide({
      wallets: [{ place, epochMin: 0, epoch, acked, known: acked }],
      commands: commands.map((one) => ({ wallet: 0, command: one, deadline: Date.now() + 60_000, memory: false })),
    })
    return answers
  }
  const decide = (...commands: Command[]) => decideAt(oracle.state.seq, ...commands)
  return { place, oracle, decide, decideAt }
}

it('forgets refunds that the journal has, and gives nothing back twice for that', async () => {
  const { place, oracle, decide } = await install('merchant')
  const refund = (key: string, of: number, amount: number) =>
    command({ kind: 'refund', key, of, amount, ...oracle.facts(of) })

  await decide(command({ kind: 'credit', key: 'in', amount: 10_000 }))
  const stale: Command[] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    const from = oracle.state.seq
    await decide(
      command({ kind: 'debit', key: `d${round}`, amount: 3 }),
      command({ kind: 'hold', key: `h${round}`, amount: 3, ttlMs: 60_000 }),
      command({ kind: 'settle', key: `s${round}`, hold: `h${round}`, amount: 3 }),
    )
    stale.push(refund(`stale-${round}`, from + 1, 3), refund(`stale-hold-${round}`, from + 3, 3))
    const refunds = [refund(`r${round}`, from + 1, 2), refund(`rh${round}`, from + 3, 2)]
    expect((await decide(...refunds)).map(({ type }) => type)).toEqual(['accepted', 'accepted'])
  }

  const notes = (await redis.hget(place.walletKey, 'refunds')) as string
  expect(notes.split('\n').length).toBeLessThan(80)
  // What was read before a refund says that all of it is left.
  for (const one of stale.slice(0, 20)) expect(await decide(one)).toEqual([{ type: 'facts' }])
  for (const one of stale) {
    const again = refund(`again-${one.of}`, one.of, 2)
    expect(await decide(again)).toMatchObject([{ type: 'rejected', code: 'refund_exceeded', facts: { left: 1 } }])
  }
})

it('notes no more the longer refunds go on, while some are always on their way into the journal', async () => {
  const { place, oracle, decide, decideAt } = await install('busy-merchant')
  const BATCH = 8
  await decide(command({ kind: 'credit', key: 'in', amount: 10_000 }))
  const stale: Command[] = []
  let longest = 0
  let acked = oracle.state.seq
  for (let round = 0; round < ROUNDS; round += 1) {
    const from = oracle.state.seq
    const debits = Array.from({ length: BATCH }, (_, n) => command({ kind: 'debit', key: `d${round}-${n}`, amount: 3 }))
    await decideAt(acked, ...debits)
    const charges = debits.map((_, n) => ({ of: from + 1 + n, ...oracle.facts(from + 1 + n) }))
    stale.push(...charges.map((read) => command({ kind: 'refund', key: `stale-${read.of}`, amount: 3, ...read })))
    const refunds = charges.map((read) => command({ kind: 'refund', key: `r${read.of}`, amount: 2, ...read }))
    expect((await decideAt(acked, ...refunds)).map(({ type }) => type)).toEqual(refunds.map(() => 'accepted'))
    // The journal has what was decided before these.
    acked = from
    longest = Math.max(longest, ((await redis.hget(place.walletKey, 'refunds')) as string).split('\n').length)
  }
  expect(longest).toBeLessThan(64 + 3 * BATCH)
  for (const one of stale.filter((_, n) => n % 7 === 0)) {
    const [answer] = await decide(one)
    // What is forgotten is asked for, and what is not counts.
    if (answer?.type !== 'facts') expect(answer).toMatchObject({ code: 'refund_exceeded', facts: { left: 1 } })
  }
})

it('asks for the charge before it measures a refund against it, whatever it knows of other refunds', async () => {
  const { oracle, decide } = await install('late-reader')
  const debit = 2
  await decide(
    command({ kind: 'credit', key: 'in', amount: 100 }),
    command({ kind: 'debit', key: 'out', amount: 50 }), // acknowledged from memory: not in the journal yet
  )
  const unread = command({ kind: 'refund', key: 'r2', of: debit, amount: 11 })
  const read = (key: string) => command({ kind: 'refund', key, of: debit, amount: 11, ...oracle.facts(debit) })
  expect(await decide(read('r1'))).toMatchObject([{ type: 'accepted' }])
  expect(await decide(unread)).toEqual([{ type: 'facts' }])
  expect(oracle.decide(unread, START)).toEqual({ type: 'facts' })
  expect(await decide(read('r2'))).toMatchObject([{ type: 'accepted' }])
})
