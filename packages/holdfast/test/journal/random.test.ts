import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { SimDatabase } from '../../../../sim/database.js'
import { SimJournal } from '../../../../sim/journal.js'
import { freshDatabase } from '../../../../test/servers.js'
import { type Filed, type Journal, PostgresJournal } from '../../src/journal/index.js'
import { type Command, command, type Entry, genesisHash, hashEntry, type WalletState } from '../../src/machine/index.js'
import { Postgres } from '../../src/postgres/index.js'
import { type Step, steps } from '../machine/commands.js'
import { emptyState, Oracle } from '../machine/oracle.js'
import { kept, newRef, raise, replay, Writer } from './journals.js'

let postgres: Postgres
let journals: [Journal, Journal]

beforeAll(async () => {
  postgres = new Postgres(await freshDatabase())
  journals = [new PostgresJournal(postgres, () => 1), new SimJournal(new SimDatabase({ now: () => Date.now() }))]
})
afterAll(() => postgres.close())

const histories = fc.array(steps, { minLength: 1, maxLength: 5 }).map((parts) => parts.flat())

/** A hold that is charged, refunded, closed and refunded again, so that the facts of charges are never dull. */
const billed = fc
  .tuple(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 1, max: 60 }), fc.constantFrom('settle', 'release'))
  .map(([first, second, end]): Step[] =>
    [
      command({ kind: 'unfreeze', key: 'b0' }),
      command({ kind: 'credit', key: 'b1', amount: 500 }),
      command({ kind: 'hold', key: 'billed', amount: 100, ttlMs: 1_000_000 }),
      command({ kind: 'capture', key: 'b2', hold: 'billed', amount: first }),
      command({ kind: 'capture', key: 'b3', hold: 'billed', amount: second, beyond: true }),
      command({ kind: 'refund', key: 'b4', of: -2, amount: first }),
      command({ kind: end as 'settle', key: 'b5', hold: 'billed', amount: first + second }),
      command({ kind: 'refund', key: 'b6', of: -2, amount: 1 }),
    ].map((command) => ({ command, passedMs: 1 })),
  )

/** How to send: which part of what is decided, in what order, with what beside it. */
const shuffles = fc.array(
  fc.record({
    size: fc.integer({ min: 1, max: 12 }),
    order: fc.infiniteStream(fc.integer({ min: 0, max: 1_000 })),
    wrong: fc.constantFrom('nothing', 'again', 'resend', 'old', 'fork', 'forged', 'ahead', 'late', 'bad'),
    after: fc.constantFrom('nothing', 'nothing', 'raise', 'takeOver', 'announce', 'checkpoint', 'relax'),
  }),
  { minLength: 1, maxLength: 8 },
)

test('both journals give the same verdicts and states, whatever is sent in whatever order', async () => {
  const seen = new Map<string, number>()
  await fc.assert(
    fc.asyncProperty(histories, shuffles, async (sequence, sends) => {
      const refs = [newRef(), newRef()]
      const heads = refs.map((ref) => genesisHash(ref, 'EUR'))
      for (const [index, ref] of refs.entries()) {
        const head = heads[index] as string
        await both((one) =>
          one.open({ ref, tenant: 't', id: ref, currency: 'EUR', creditLimit: 0, metadata: '', head }),
        )
      }
      const writers = await Promise.all(refs.map(loadWriter))
      let before: Filed[] = []
      for (let from = 0, send = 0; from < sequence.length; send += 1) {
        const { size, order, wrong, after } = sends[send % sends.length] as (typeof sends)[number]
        const filed = decideAll(writers, sequence.slice(from, from + size))
        from += size
        const beside = wrong === 'resend' ? before : wrongOnes(wrong, filed, writers)
        before = filed
        const shuffled = shuffle([...filed, ...beside], order)
        const verdicts = await both(async (one) => (await one.append(shuffled)).verdicts)
        for (const { type } of verdicts) seen.set(type, (seen.get(type) ?? 0) + 1)
        for (const writer of writers) await compare(writer, after)
      }
      for (const [index, ref] of refs.entries()) await checkWhole(ref, heads[index] as string)
    }),
    { numRuns: 100 },
  )
  for (const type of ['appended', 'there', 'seen', 'epoch', 'gap', 'stale', 'late', 'bad']) {
    expect(seen.get(type) ?? 0, type).toBeGreaterThan(0)
  }
}, 120_000)

test('what the journals know of a charge is what the oracle knows', async () => {
  const met = { charge: 0, refunded: 0, closedHold: 0, refundedHold: 0 }
  await fc.assert(
    fc.asyncProperty(histories, billed, async (sequence, bill) => {
      const ref = newRef()
      const head = genesisHash(ref, 'EUR')
      await both((one) => one.open({ ref, tenant: 't', id: ref, currency: 'EUR', creditLimit: 0, metadata: '', head }))
      const oracle = new Oracle(head)
      const { state } = await loadWriter(ref)
      oracle.state.epoch = state.epoch
      let now = 1_000_000
      for (const { command: given, passedMs } of [...sequence, ...bill]) {
        now += passedMs
        oracle.decide(given.kind === 'refund' ? asRefund(given, oracle) : given, now)
      }
      await both(async (one) => one.append(oracle.journal.map((entry) => ({ ref, entry, deadline: 0 }))).then(() => {}))
      for (let seq = 0; seq <= oracle.state.seq + 1; seq += 1) {
        const charge = await both((one) => one.charge(ref, seq))
        const expected = oracle.facts(seq)
        // What charged nothing charged 0, not -0.
        expect(charge).toEqual(expected && { ...expected, charge: expected.charge + 0 })
        if (!charge) continue
        met.charge += 1
        if (charge.facts.refunded > 0) met.refunded += 1
        if (charge.facts.holdClosed) met.closedHold += 1
        if (charge.facts.hold.refunded > 0) met.refundedHold += 1
      }
    }),
    { numRuns: 60 },
  )
  for (const [what, times] of Object.entries(met)) expect(times, what).toBeGreaterThan(10)
}, 120_000)

/** Asks both, and has only one answer. Clocks differ. */
async function both<T>(ask: (journal: Journal) => Promise<T>): Promise<T> {
  const [real, simulated] = await Promise.all(journals.map(ask))
  expect(withoutClock(simulated)).toEqual(withoutClock(real))
  return real as T
}

function withoutClock(answer: unknown): unknown {
  if (typeof answer !== 'object' || answer === null || !('clock' in answer)) return answer
  const { clock, ...rest } = answer
  return { ...rest, state: { ...(rest as { state?: WalletState }).state, at: 0 } }
}

async function loadWriter(ref: string): Promise<Writer> {
  const loaded = await both((one) => raise(one, ref))
  if (!loaded) throw new Error('There is no such wallet')
  // The clocks of opening differ by a moment; entries bring their own time.
  return new Writer(ref, { ...loaded.state, at: 0 })
}

function decideAll(writers: readonly Writer[], part: readonly Step[]): Filed[] {
  return part.flatMap(({ command: given, passedMs }, index) => {
    const writer = writers[index % writers.length] as Writer
    writer.now += passedMs
    if (given.kind !== 'refund') return writer.file(...writer.decide(given))
    const { epoch, seq } = writer.state
    const facts = { epoch, seq, refunded: 0, holdClosed: false, hold: { charged: 0, refunded: 0 } }
    return writer.file(...writer.decide(command({ ...given, charge: 300, facts })))
  })
}

function wrongOnes(wrong: string, filed: readonly Filed[], writers: readonly Writer[]): Filed[] {
  const some = filed.at(filed.length >> 1)
  if (!some) return []
  const { ref, entry } = some
  const changed = (changes: Partial<Entry>, deadline = 0) => {
    const other = { ...entry, ...changes }
    return [{ ref, entry: { ...other, hash: hashEntry(other) }, deadline }]
  }
  const writer = writers.find((one) => one.ref === ref) as Writer
  switch (wrong) {
    case 'again':
      return [...filed]
    case 'old':
      return changed({ epoch: entry.epoch - 1 })
    case 'fork':
      return changed({ key: `${entry.key} forked` })
    case 'forged':
      return changed({ available: entry.available + 1 })
    case 'ahead':
      return changed({ epoch: entry.epoch + 1, seq: entry.seq + 1 })
    case 'late':
    case 'bad': {
      const fork = writer.fork()
      const [next] = fork.decide(command({ kind: 'credit', key: wrong === 'bad' ? '\0' : 'late', amount: 1 }))
      return next ? [{ ref, entry: next, deadline: 1 }] : []
    }
    default:
      return []
  }
}

function shuffle(filed: readonly Filed[], order: Iterable<number> & Iterator<number>): Filed[] {
  return filed
    .map((one) => ({ one, at: order.next().value as number }))
    .sort((a, b) => a.at - b.at)
    .map(({ one }) => one)
}

/** The writer goes on from what the journals hold, when what it decided did not all get there. */
async function compare(writer: Writer, after: string): Promise<void> {
  const { ref } = writer
  const rows = await both(async (one) => (await one.read([ref])).map(({ openedAt, at, ...row }) => row))
  const complete = rows[0]?.head === writer.state.head
  const { epoch, seq, due } = writer.state
  if (after === 'checkpoint') await both((one) => one.checkpoint(ref))
  if (after === 'relax') await both((one) => one.relax(ref, epoch, seq, due))
  const takesOver = after === 'takeOver' || after === 'announce'
  if (!takesOver && after !== 'raise' && complete) return
  const loaded = await both((one) =>
    takesOver ? one.takeOver(ref, { announce: after === 'announce' }) : raise(one, ref),
  )
  if (!loaded || typeof loaded === 'string') throw new Error('There is no such wallet')
  if (complete) expect([...loaded.state.holds].sort()).toEqual([...writer.state.holds].sort())
  writer.state = { ...loaded.state, at: seq === 0 ? 0 : loaded.state.at }
}

/** All of a journal, replayed from nothing, is the state that a raise gives. */
async function checkWhole(ref: string, head: string): Promise<void> {
  const entries = await both((one) => one.entries(ref, 1, 10_000))
  expect(await both((one) => one.find(entries.map(({ key }) => ({ ref, key }))))).toEqual(entries)
  for (const [index, entry] of entries.entries()) {
    expect(entry).toMatchObject({ seq: index + 1, prev: entries[index - 1]?.hash ?? head, hash: hashEntry(entry) })
  }
  const loaded = await both((one) => raise(one, ref))
  const replayed = replay(emptyState(head), entries.map(kept))
  for (const field of ['seq', 'head', 'available', 'reserved', 'creditLimit', 'status', 'holds'] as const) {
    expect(replayed[field], field).toEqual(loaded?.state[field])
  }
}

function asRefund(given: Command, oracle: Oracle): Command {
  const charges = oracle.journal.filter(({ kind }) => kind === 'debit' || kind === 'capture' || kind === 'settle')
  const of = charges.at(given.of % Math.max(1, charges.length))?.seq ?? 1
  return command({ ...given, of, ...(oracle.facts(of) ?? { charge: 0, facts: null }) })
}
