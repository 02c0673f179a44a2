import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freshDatabase } from '../../../../test/servers.js'
import {
  type FoundHold,
  type HoldReading,
  JournalReader,
  type MadeHold,
  PostgresJournal,
} from '../../src/journal/index.js'
import { type Command, command, type Entry, genesisHash } from '../../src/machine/index.js'
import { Postgres } from '../../src/postgres/index.js'
import { QUERIES } from '../../src/postgres/queries.generated.js'
import { steps } from '../machine/commands.js'
import { Oracle } from '../machine/oracle.js'
import { append, kept, load, newRef, newWallet, type Writer } from './journals.js'

let postgres: Postgres
let journal: PostgresJournal
const never = new AbortController().signal

beforeAll(async () => {
  postgres = new Postgres(await freshDatabase())
  journal = new PostgresJournal(postgres)
})
afterAll(() => postgres.close())

const STATUS: Record<string, string> = { settle: 'settled', release: 'released', expire: 'expired' }

/** A hold by the plainest reading there is: all entries about it. */
function readingOf(entries: readonly Entry[], id: string): HoldReading | null {
  const about = entries.filter(({ hold }) => hold === id)
  const made = about[0]
  const last = about.findLast(({ kind }) => kind !== 'refund')
  if (!made || !last) return null
  const status = (STATUS[last.kind] ?? 'open') as HoldReading['status']
  return {
    id,
    seq: made.seq,
    madeAt: made.at,
    metadata: made.metadata,
    status,
    closedAt: status === 'open' ? 0 : last.at,
    amount: last.holdAmount,
    captured: last.holdCaptured,
    left: last.holdLeft,
    expiresAt: last.holdExpiresAt,
    refunded: Math.max(...about.map(({ holdRefunded }) => holdRefunded)),
  }
}

async function find(reader: JournalReader, ref: string, id: string): Promise<FoundHold & { made: MadeHold }> {
  const found = await reader.findHold(ref, id)
  if (!found?.made) throw new Error(`There is no hold ${id}`)
  return { ...found, made: found.made }
}

async function entriesOf(reader: JournalReader, ref: string, id: string): Promise<Entry[]> {
  const all: Entry[] = []
  for await (const part of reader.entriesOf(ref, await find(reader, ref, id), never)) all.push(...part)
  return all
}

test('reads what all entries together tell, however long a stretch is and whenever there was a checkpoint', async () => {
  const met = { open: 0, settled: 0, released: 0, expired: 0, refunded: 0 }
  await fc.assert(
    fc.asyncProperty(
      fc.array(steps, { minLength: 1, maxLength: 4 }).map((parts) => parts.flat()),
      fc.constantFrom(1, 2, 3, 7, 5_000),
      fc.integer({ min: 0, max: 200 }),
      async (sequence, stretch, checkpointAt) => {
        const reader = new JournalReader(postgres, stretch)
        const ref = newRef()
        const genesis = genesisHash(ref, 'EUR')
        await journal.open({ ref, tenant: 't', id: ref, currency: 'EUR', creditLimit: 0, metadata: '', head: genesis })
        const oracle = new Oracle(genesis)
        oracle.state.epoch = (await load(journal, ref)).state.epoch
        let now = 1_000_000
        for (const { command: given, passedMs } of sequence) {
          // Slowly, so that holds live to be closed by others than the clock as well.
          now += passedMs >> 3
          oracle.decide(aimed(oracle, given), now)
        }
        const entries = oracle.journal
        const file = (part: readonly Entry[]) => part.map((entry) => ({ ref, entry, deadline: 0 }))
        await append(journal, file(entries.slice(0, checkpointAt)))
        await journal.checkpoint(ref)
        await append(journal, file(entries.slice(checkpointAt)))

        for (let n = 1; n <= 12; n += 1) {
          const id = `hold-${n}`
          const expected = readingOf(entries, id)
          const found = await reader.findHold(ref, id)
          expect(found?.wallet).toEqual({
            currency: 'EUR',
            epoch: oracle.state.epoch,
            seq: entries.length,
            head: oracle.state.head,
          })
          if (!expected || !found?.made) {
            expect([expected, found?.made]).toEqual([null, null])
            continue
          }
          const about = entries.filter(({ hold }) => hold === id).map(kept)
          expect(await reader.readHold(ref, await find(reader, ref, id), never)).toEqual(expected)
          expect(await entriesOf(reader, ref, id)).toEqual(about)
          met[expected.status] += 1
          if (expected.refunded > 0) met.refunded += 1
        }
        const open = entries
          .filter(({ kind, key }) => kind === 'hold' && oracle.state.holds.has(key))
          .map(({ key }) => readingOf(entries, key))
        expect((await reader.openHolds(ref, 0, 100))?.holds).toEqual(open)
        const second = open[1]
        if (second) expect((await reader.openHolds(ref, open[0]?.seq ?? 0, 1))?.holds).toEqual([second])
        await compareBalances(reader, ref, entries, genesis)
      },
    ),
    { numRuns: 120 },
  )
  for (const [what, times] of Object.entries(met)) expect(times, what).toBeGreaterThan(0)
}, 120_000)

/** At something that is there, if there is anything: a hold that is open, or a charge. */
function aimed(oracle: Oracle, given: Command): Command {
  if (given.kind === 'refund') {
    const charges = oracle.journal.filter(({ kind }) => ['debit', 'capture', 'settle'].includes(kind))
    const charge = charges[given.of % charges.length]
    if (!charge) return command({ kind: 'touch' })
    const amount = 1 + (given.amount >> 4)
    return { ...command({ kind: 'refund', key: given.key, of: charge.seq, amount }), ...oracle.facts(charge.seq) }
  }
  const holds = [...oracle.state.holds.keys()]
  const makes = given.kind === 'hold' || given.kind === 'meter'
  if (given.hold === '' || makes || holds.length === 0) return given
  return { ...given, hold: holds[given.key.length % holds.length] as string }
}

async function compareBalances(reader: JournalReader, ref: string, entries: readonly Entry[], genesis: string) {
  const balance = (entry: Entry | undefined) => ({
    seq: entry?.seq ?? 0,
    available: entry?.available ?? 0,
    reserved: entry?.reserved ?? 0,
    head: entry?.hash ?? genesis,
  })
  for (let seq = 0; seq <= entries.length; seq += 1) {
    expect(await reader.balanceAt(ref, { seq })).toMatchObject({ ...balance(entries[seq - 1]), complete: true })
  }
  expect(await reader.balanceAt(ref, { seq: entries.length + 1 })).toMatchObject({
    seq: null,
    lastSeq: entries.length,
  })
  const times = new Set(entries.flatMap(({ at }) => [at - 1, at, at + 1]))
  for (const timeMs of times) {
    const last = entries.findLast(({ at }) => at <= timeMs)
    const complete = (last?.seq ?? 0) < entries.length
    expect(await reader.balanceAt(ref, { timeMs })).toMatchObject({ ...balance(last), complete })
  }
}

test('tells nothing of a wallet that there is not', async () => {
  const reader = new JournalReader(postgres)
  expect(await reader.openHolds(newRef(), 0, 10)).toBeNull()
  expect(await reader.findHold(newRef(), 'h')).toBeNull()
  expect(await reader.balanceAt(newRef(), { seq: 0 })).toBeNull()
  expect(await reader.balanceAt(newRef(), { timeMs: 5 })).toBeNull()
})

test('stops looking through the journal when nobody waits any more', async () => {
  const wallet = await newWallet(journal)
  const entries = [wallet.credit('c'), wallet.hold('h')]
  for (let n = 0; n < 20; n += 1) entries.push(wallet.credit(`${n}`))
  entries.push(wallet.make({ kind: 'release', key: 'r', hold: 'h' }))
  await append(journal, wallet.file(...entries))
  const reader = new JournalReader(postgres, 2)
  const found = await find(reader, wallet.ref, 'h')
  const stop = AbortSignal.abort(new Error('enough'))
  await expect(reader.readHold(wallet.ref, found, stop)).rejects.toThrow('enough')
  await expect(reader.entriesOf(wallet.ref, found, stop).next()).rejects.toThrow('enough')
})

test('tokens of locks only grow', async () => {
  const reader = new JournalReader(postgres)
  const tokens = await Promise.all(Array.from({ length: 20 }, () => reader.nextLockToken()))
  expect(new Set(tokens).size).toBe(20)
  expect(await reader.nextLockToken()).toBeGreaterThan(Math.max(...tokens))
})

describe('in a journal of 20,000 entries', () => {
  const ENTRIES = 20_000
  const YEAR = 31_536_000_000
  let wallet: Writer

  /** An old hold that is open, one that was closed late, and refunds of it; the rest is of no concern to them. */
  beforeAll(async () => {
    wallet = await newWallet(journal)
    await append(
      journal,
      wallet.file(wallet.credit('in', 1_000_000), wallet.hold('old', 50, YEAR), wallet.hold('late', 50, YEAR)),
    )
    while (wallet.state.seq < ENTRIES) {
      const part = []
      for (let n = 0; n < 1_000; n += 1) {
        wallet.now += 3
        part.push(wallet.credit(`c${wallet.state.seq}`, 1))
      }
      await append(journal, wallet.file(...part))
      if (wallet.state.seq < ENTRIES - 500) await journal.checkpoint(wallet.ref)
    }
    await append(journal, wallet.file(wallet.make({ kind: 'settle', key: 's', hold: 'late', amount: 40 })))
    await postgres.transaction((tx) => tx.execute('test', 'ANALYZE wallets; ANALYZE entries'))
  })

  /** Pages that a statement touches, planned as the library has it planned. */
  async function pagesOf(name: keyof typeof QUERIES, ...values: (string | number)[]): Promise<number> {
    const literals = values.map((value) => (typeof value === 'number' ? value : `'${value}'`))
    const explain = 'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)'
    const [row] = await postgres.transaction(async (tx) => {
      await tx.execute('test', `DEALLOCATE ALL; PREPARE asked AS ${QUERIES[name]}`)
      // Once to warm up: reading the catalogue counts as well.
      await tx.execute('test', `EXECUTE asked(${literals})`)
      return tx.execute<{ 'QUERY PLAN': { Plan: Record<string, number> }[] }>(
        'test',
        `${explain} EXECUTE asked(${literals})`,
      )
    })
    const plan = row?.['QUERY PLAN'][0]?.Plan ?? {}
    return (plan['Shared Hit Blocks'] ?? Number.NaN) + (plan['Shared Read Blocks'] ?? Number.NaN)
  }

  test('a statement reads what it needs, and not the journal', async () => {
    const middle = ENTRIES / 2
    const time = (await new JournalReader(postgres).balanceAt(wallet.ref, { seq: middle }))?.at as number
    const all = await pagesOf('readHoldEntries', wallet.ref, 'none', 0, ENTRIES + 10)
    expect(all).toBeGreaterThan(500)
    expect(await pagesOf('balanceAtSeq', wallet.ref, middle)).toBeLessThan(20)
    expect(await pagesOf('balanceAtTime', wallet.ref, time)).toBeLessThan(100)
    expect(await pagesOf('findHold', wallet.ref, 'late')).toBeLessThan(30)
    expect(await pagesOf('lastOfHold', wallet.ref, 'old', middle, middle + 100)).toBeLessThan(30)
    expect(await pagesOf('readHoldEntries', wallet.ref, 'old', middle, middle + 100)).toBeLessThan(30)
    expect(await pagesOf('readHoldRefunds', wallet.ref, 'late', 0)).toBeLessThan(10)
    expect(await pagesOf('readEntries', wallet.ref, middle, 10)).toBeLessThan(100)
    // From the last checkpoint on: a thousand entries of twenty thousand.
    expect(await pagesOf('readOpenHold', wallet.ref, 'old')).toBeLessThan(all / 4)
    expect(await pagesOf('readOpenHolds', wallet.ref, 0, 100)).toBeLessThan(all / 4)
  })

  test('a hold as old as the journal is read, open or closed', async () => {
    const reader = new JournalReader(postgres)
    expect(await reader.readHold(wallet.ref, await find(reader, wallet.ref, 'old'), never)).toMatchObject({
      status: 'open',
      left: 50,
      seq: 2,
    })
    expect(await reader.readHold(wallet.ref, await find(reader, wallet.ref, 'late'), never)).toMatchObject({
      status: 'settled',
      captured: 40,
      seq: 3,
    })
    expect((await entriesOf(reader, wallet.ref, 'late')).map(({ kind }) => kind)).toEqual(['hold', 'settle'])
    expect((await entriesOf(reader, wallet.ref, 'old')).map(({ kind }) => kind)).toEqual(['hold'])
  })
})
