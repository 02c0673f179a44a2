import { Redis } from 'ioredis'
import { afterAll, expect, it } from 'vitest'
import { freshRedis } from '../../../../test/servers.js'
import { type Command, command, decide, MAX_AMOUNT, type WalletState } from '../../src/machine/index.js'
import { Keys } from '../../src/redis/index.js'
import { AcquaintedSequencer } from '../sequencer/support/acquainted.js'
import { runnerOn } from '../sequencer/support/runner.js'
import { BAD_NUMBERS, START } from './commands.js'
import { emptyState } from './oracle.js'

/** Nothing asks for this: whoever makes a command checks its numbers. The machine is what stands before the balances all the same. */

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 7), shards: 1 })
const redis = new Redis(await freshRedis())
afterAll(() => redis.disconnect())
const sequencer = new AcquaintedSequencer(runnerOn(redis), {
  aheadMaxMs: 0,
  helpAfterMs: 1_000,
  idleAfterMs: 60_000,
  pendingMax: 100,
  now: () => START,
})

const open = { amount: 300, captured: 100, left: 200, expiresAt: START + 60_000, refunded: 0 }
const before = (): WalletState => ({
  ...emptyState('0'.repeat(40)),
  seq: 7,
  at: START,
  available: 1_000,
  reserved: 200,
  creditLimit: 50,
  due: open.expiresAt,
  since: 1,
  holds: new Map([['h', { ...open }]]),
})

const FACTS = { epoch: before().epoch, seq: 7, refunded: 0, holdClosed: false, hold: { charged: 100, refunded: 0 } }
const FINE = {
  credit: {},
  debit: {},
  capture: { hold: 'h', beyond: true },
  refund: { hold: 'h', of: 3, charge: 100, facts: FACTS },
  hold: { ttlMs: 1_000 },
  settle: { hold: 'h', beyond: true },
  extend: { hold: 'h' },
  limit: {},
} as const
type Kind = keyof typeof FINE
const kinds = Object.keys(FINE) as Kind[]
/** Of these none at all is as bad. A hold of nothing is what is paid with where something costs nothing. */
const SOME: readonly Kind[] = ['credit', 'debit', 'capture', 'refund']

let asked = 0
const ask = (kind: Kind, numbers: { amount: number; ttlMs?: number }): Command =>
  command({ kind, key: `key-${++asked}`, ...FINE[kind], ...numbers })

const badAmounts = (kind: Kind): Command[] =>
  [...BAD_NUMBERS, ...(SOME.includes(kind) ? [0] : [])].map((amount) => ask(kind, { amount }))
/** The last ends after all time that a number can tell. */
const badTtls = (kind: Kind, ...more: number[]): Command[] =>
  [...BAD_NUMBERS, ...more, MAX_AMOUNT].map((ttlMs) => ask(kind, { amount: 10, ttlMs }))
const BAD = [...kinds.flatMap(badAmounts), ...badTtls('hold', 0), ...badTtls('extend')]
const REFUSED = { code: 'invalid_amount', facts: { available: 1_000, reserved: 200 } }

it.each(BAD)('refuses $params, and changes nothing', (bad) => {
  const state = before()
  expect(decide(state, bad, START)).toEqual({ entries: [], outcome: { type: 'rejected', rejection: REFUSED } })
  expect(state).toEqual(before())
})

it.each([
  ['a frozen wallet', { status: 'frozen' as const }],
  ['a wallet without that hold', { holds: new Map() }],
])('refuses it before anything else is looked at: %s', (_, change) => {
  for (const bad of BAD) {
    expect(decide({ ...before(), ...change }, bad, START).outcome).toMatchObject({ rejection: REFUSED })
  }
})

it('refuses the same in Redis, and changes nothing', async () => {
  const place = keys.of('w')
  const deadline = Date.now() + 60_000
  await sequencer.install('test', { place, state: before(), memory: false, deadline, clock: START, finalKeys: [] })
  const fields = await redis.hgetallBuffer(place.walletKey)
  for (let from = 0; from < BAD.length; from += 64) {
    const commands = BAD.slice(from, from + 64)
    const { answers, runs } = await sequencer.decide({
      wallets: [{ place, epochMin: 0, epoch: 0, acked: 0, known: 0 }],
      commands: commands.map((command) => ({ wallet: 0, command, deadline, memory: false })),
    })
    expect(answers).toMatchObject(commands.map(() => ({ type: 'rejected', ...REFUSED })))
    expect(runs).toMatchObject([{ entries: [] }])
  }
  expect(await redis.hgetallBuffer(place.walletKey)).toEqual(fields)
})

it('takes the least and the most that there may be', () => {
  const least = { credit: 1, debit: 1, capture: 1, refund: 1, hold: 0, settle: 0, extend: 0, limit: 0 }
  for (const kind of kinds) {
    expect(decide(before(), ask(kind, { amount: least[kind] }), START).outcome, kind).toEqual({ type: 'accepted' })
  }
  const full = { ...before(), available: 0, reserved: 0, holds: new Map() }
  expect(decide(full, ask('credit', { amount: MAX_AMOUNT }), START).outcome).toEqual({ type: 'accepted' })
  const long = ask('hold', { amount: 1, ttlMs: MAX_AMOUNT - START })
  expect(decide(before(), long, START).outcome).toEqual({ type: 'accepted' })
})
