import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Entry, emptyStock, command as makeCommand } from '../../src/machine/index.js'
import type { Place, ScriptRunner } from '../../src/redis/index.js'
import type { Answer } from '../../src/sequencer/index.js'
import { AcquaintedSequencer } from '../sequencer/support/acquainted.js'
import { START, type Step, steps } from './commands.js'
import { CHARGES } from './life-commands.js'
import { emptyState, Oracle } from './oracle.js'
import { expectStock, placeOf, type Server, servers } from './servers.js'
import { stockSteps } from './stock-commands.js'
import { GENESIS } from './twin.js'

const OUTCOMES = [
  'accepted',
  'rejected',
  'replay',
  'conflict',
  'expired',
  'refund',
  'facts',
  'invalid_amount',
  'session',
  'tick that charges',
  'tick that extends',
  'end beyond the hold',
]
const SALE_OUTCOMES = [
  'accepted',
  'replay',
  'conflict',
  'expired',
  'sale_not_active',
  'duplicate_item',
  'user_limit',
  'sold_out',
  'hold_unknown',
  'hold_exceeded',
  'paid',
  'added to a running checkout',
  'bought',
  'bought in part',
  'cancelled',
  'passed on',
]
const ROUNDS_MAX = 8

describe.each(Object.keys(servers))('the machine in Lua on %s', (name) => {
  let server: Server
  let wallets = 0

  beforeAll(async () => {
    server = await (servers[name] as () => Promise<Server>)()
  })
  afterAll(() => server.close())

  test.each([
    ['wallets', steps, OUTCOMES, false],
    ['sales', stockSteps, SALE_OUTCOMES, true],
  ] as const)(
    'gives the same entries and answers as the machine in TypeScript: %s',
    async (_, sequences, wanted, isSale) => {
      const outcomes = new Map<string, number>()
      const missing = () => wanted.filter((outcome) => !outcomes.has(outcome))
      // A property over cases that never come up shows nothing: it goes on until each has, within reason.
      for (let round = 0; round < ROUNDS_MAX && (round === 0 || missing().length > 0); round += 1) {
        await fc.assert(
          fc.asyncProperty(sequences, fc.integer({ min: 1, max: 5 }), async (sequence, batch) => {
            const place = placeOf(`wallet-${++wallets}`, isSale)
            await compare(server.runner, place, sequence, batch, outcomes)
          }),
          { numRuns: 500 },
        )
      }
      expect(missing()).toEqual([])
    },
    120_000,
  )

  test('lets holds that run out at the same time expire in the order of the bytes of their names', async () => {
    const place = placeOf(`wallet-${++wallets}`, false)
    const { journal } = await compare(server.runner, place, expiringTogether, 1, new Map())
    expect(journal.filter(({ kind }) => kind === 'expire').map(({ hold }) => hold)).toEqual(IN_ORDER)
  })
})

/** By their bytes: capital letters first, whatever the language of the server, and the shorter of two that begin alike. */
const IN_ORDER = ['A', 'B', 'a', 'a b', 'a-b', 'aB', 'ab', 'b', 'ä', 'é', '日', '\u{ff5e}', '\u{1f600}']

const expiringTogether: Step[] = [
  { command: makeCommand({ kind: 'credit', key: 'in', amount: 1_000 }), passedMs: 0 },
  ...[...IN_ORDER].reverse().map((key) => ({
    command: makeCommand({ kind: 'hold', key, amount: 1, ttlMs: 100 }),
    passedMs: 0,
  })),
  { command: makeCommand({ kind: 'touch' }), passedMs: 100 },
]

async function compare(
  runner: ScriptRunner,
  place: Place,
  sequence: Step[],
  batchSize: number,
  outcomes: Map<string, number>,
): Promise<Oracle> {
  let now = START
  const sequencer = new AcquaintedSequencer(runner, {
    aheadMaxMs: 0,
    helpAfterMs: 10_000,
    idleAfterMs: 600_000,
    pendingMax: 1_000,
    now: () => now,
  })
  const oracle = new Oracle(GENESIS, place.isSale)
  const state = { ...emptyState(GENESIS), stock: place.isSale ? emptyStock() : null }
  const installed = await sequencer.install('test', {
    place,
    state,
    memory: false,
    deadline: Number.MAX_SAFE_INTEGER,
    clock: 0,
    finalKeys: [],
  })
  expect(installed).toEqual({ type: 'installed', lost: [] })
  let known = 0
  for (let from = 0; from < sequence.length; from += batchSize) {
    const part = sequence.slice(from, from + batchSize)
    now += part[0]?.passedMs ?? 0
    // A batch is decided at one time; what its refunds know is what was there before it.
    const commands = part.map(({ command }) => {
      if (command.kind !== 'refund') return command
      const charges = oracle.journal.filter(({ kind }) => CHARGES.includes(kind))
      const of = charges[command.of % Math.max(1, charges.length)]?.seq ?? command.of
      // Now and then the charge was not in the journal yet when the caller looked for it.
      const read = command.amount % 5 === 0 ? null : oracle.facts(of)
      return makeCommand({ ...command, of, ...(read ?? { charge: 0, facts: null }) })
    })
    const acked = Math.max(0, known - 3)
    const { runs, answers } = await sequencer.decide({
      wallets: [{ place, epochMin: 0, epoch: state.epoch, acked, known }],
      commands: commands.map((command) => ({ command, wallet: 0, deadline: Number.MAX_SAFE_INTEGER, memory: false })),
    })
    const before = oracle.journal.length
    for (const [index, command] of commands.entries()) {
      const expected = oracle.decide(command, now)
      oracle.check()
      const answer = answers[index] as Answer
      const label = `${command.kind} ${command.params}`
      outcomes.set(expected.type, (outcomes.get(expected.type) ?? 0) + 1)
      if (command.kind === 'refund' && expected.type === 'accepted') outcomes.set('refund', 1)
      if (expected.type === 'replay') {
        // Results that were acknowledged long ago are gone from Redis; then it says so or decides anew, and the journal catches it.
        expect(answer, label).toEqual(
          answer.type === 'seen' ? { type: 'seen' } : { type: 'replay', entry: expected.entry, memory: false },
        )
      } else if (expected.type === 'rejected') {
        const { code, facts } = expected.rejection
        outcomes.set(code, 1)
        expect(answer, label).toMatchObject({ type: 'rejected', code, facts })
      } else if (command.kind === 'touch' && expected.type === 'accepted') {
        const { due, epoch, seq } = oracle.state
        expect(answer, label).toEqual({ type: 'touched', touch: { due, epoch, seq } })
      } else {
        expect(answer.type, label).toBe(expected.type)
      }
    }
    const run = runs[0]
    if (!run || 'type' in run) throw new Error(`untrusted: ${JSON.stringify(run)}`)
    const decided = oracle.journal.slice(before)
    expect(run.entries).toEqual(decided)
    if (decided.some((entry) => entry.kind === 'expire')) outcomes.set('expired', 1)
    for (const entry of decided) {
      noteSession(entry, outcomes)
      noteSale(entry, outcomes)
    }
    known = oracle.state.seq
  }
  const replayed = oracle.replayed()
  expect(replayed).toEqual({ ...oracle.state, due: replayed.due })
  const { core } = await sequencer.look(place, 0, 'test', 0)
  const { holds, base, refundedByEntry, closedHolds, stock, ...expectedCore } = oracle.state
  expect(core).toMatchObject({ ...expectedCore, open: holds.size })
  if (!stock) return oracle
  await expectStock(runner, place, stock, state.epoch)
  return oracle
}

function noteSale({ kind, params, metadata, amount }: Entry, outcomes: Map<string, number>): void {
  if (params.startsWith('checkout') && kind === 'extend') outcomes.set('added to a running checkout', 1)
  if (params.startsWith('purchase')) outcomes.set('bought', 1)
  if (params.startsWith('purchase') && params.includes(':')) outcomes.set('paid', 1)
  // Only what was noted may be bought in part: the scene that leads there has two items, of which one is gone.
  if (params.startsWith('purchase left') && metadata === '[[4,1]]' && amount === 1) outcomes.set('bought in part', 1)
  if (params === 'cancel') outcomes.set('cancelled', 1)
  if (params.startsWith('give') || params.startsWith('take')) outcomes.set('passed on', 1)
}

function noteSession({ kind, params, amount, availableDelta }: Entry, outcomes: Map<string, number>): void {
  if (params.startsWith('meter')) outcomes.set('session', 1)
  if (kind === 'tick' && amount > 0) outcomes.set('tick that charges', 1)
  if (kind === 'tick' && availableDelta < 0) outcomes.set('tick that extends', 1)
  if (params.startsWith('end') && availableDelta < 0) outcomes.set('end beyond the hold', 1)
}
