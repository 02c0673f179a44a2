/** What Lua decides on a real Redis, appended to a real journal and read back from there: the same state, whichever of the three is asked. */
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { PostgresJournal } from '../../src/journal/index.js'
import { type Command, type Entry, genesisHash, command as makeCommand } from '../../src/machine/index.js'
import { Postgres } from '../../src/postgres/index.js'
import { append, kept, newRef, raise, replay } from '../journal/journals.js'
import { AcquaintedSequencer } from '../sequencer/support/acquainted.js'
import { runnerOn } from '../sequencer/support/runner.js'
import { START, type Step, steps } from './commands.js'
import { emptyState } from './oracle.js'
import { placeOf } from './servers.js'

const BATCH = 4
const FIELDS = ['seq', 'head', 'at', 'available', 'reserved', 'creditLimit', 'status'] as const

let redis: Redis
let postgres: Postgres
let journal: PostgresJournal

beforeAll(async () => {
  redis = new Redis(await freshRedis())
  postgres = new Postgres(await freshDatabase())
  journal = new PostgresJournal(postgres)
})
afterAll(async () => {
  redis.disconnect()
  await postgres.close()
})

/** Names of their own for each part: Redis would have forgotten those of the first when the last comes. */
function named(part: number, command: Command): Command {
  const name = (of: string): string => (of === '' ? '' : `${part} ${of}`)
  return { ...command, key: name(command.key), hold: name(command.hold) }
}

const lives = fc
  .array(steps, { minLength: 2, maxLength: 6 })
  .map((parts) =>
    parts.flatMap((part, n) => part.map(({ command, passedMs }) => ({ command: named(n, command), passedMs }))),
  )

test('the journal of what Lua decided, replayed, is what Redis has and what would be loaded', async () => {
  const kinds = new Map<string, number>()
  let openHolds = 0
  await fc.assert(
    fc.asyncProperty(lives, async (life) => {
      const ref = newRef()
      const head = genesisHash(ref, 'EUR')
      const place = placeOf(ref, false)
      const decided = await live(ref, life)
      for (const { kind } of decided) kinds.set(kind, (kinds.get(kind) ?? 0) + 1)

      const entries = await journal.entries(ref, 1, decided.length + 1)
      expect(entries).toEqual(decided.map(kept))
      const replayed = replay(emptyState(head), entries)
      const [hot] = await sequencerAt(() => START).inspect([place])
      const [row] = await journal.read([ref])
      for (const field of FIELDS) {
        // Before the first entry Postgres says when it was opened.
        if (field === 'at' && entries.length === 0) continue
        expect([hot?.core?.[field], row?.[field]], field).toEqual([replayed[field], replayed[field]])
      }
      expect(hot?.holds).toEqual(replayed.holds)
      expect((await raise(journal, ref))?.state.holds).toEqual(replayed.holds)
      openHolds += replayed.holds.size
    }),
    { numRuns: 60 },
  )
  for (const kind of [
    'credit',
    'debit',
    'hold',
    'capture',
    'extend',
    'settle',
    'release',
    'expire',
    'refund',
    'tick',
  ]) {
    expect(kinds.get(kind) ?? 0, kind).toBeGreaterThan(0)
  }
  expect(openHolds).toBeGreaterThan(0)
}, 120_000)

function sequencerAt(now: () => number): AcquaintedSequencer {
  return new AcquaintedSequencer(runnerOn(redis), {
    aheadMaxMs: 0,
    helpAfterMs: 10_000,
    idleAfterMs: 600_000,
    pendingMax: 1_000,
    now,
  })
}

/** Loaded as the engine loads it, decided in Redis, and appended batch by batch. Returns what Redis said that it decided. */
async function live(ref: string, life: readonly Step[]): Promise<Entry[]> {
  let now = START
  const sequencer = sequencerAt(() => now)
  const place = placeOf(ref, false)
  const head = genesisHash(ref, 'EUR')
  await journal.open({ ref, tenant: 'test', id: ref, currency: 'EUR', creditLimit: 0, metadata: '', head })
  const loaded = await raise(journal, ref)
  if (!loaded) throw new Error('There is no such wallet')
  // It was opened today, and lives in the past: Redis's own clock must not come into it.
  const state = { ...loaded.state, at: 0 }
  const installation = { place, state, memory: false, deadline: Number.MAX_SAFE_INTEGER, clock: 0, finalKeys: [] }
  expect(await sequencer.install('test', installation)).toMatchObject({ type: 'installed' })

  const decided: Entry[] = []
  for (let from = 0; from < life.length; from += BATCH) {
    const part = life.slice(from, from + BATCH)
    now += part.reduce((sum, { passedMs }) => sum + passedMs, 0)
    const commands = await Promise.all(part.map(({ command }) => withCharge(ref, command)))
    const known = decided.length
    const { runs } = await sequencer.decide({
      wallets: [{ place, epochMin: 0, epoch: state.epoch, acked: known, known }],
      commands: commands.map((command) => ({ command, wallet: 0, deadline: Number.MAX_SAFE_INTEGER, memory: false })),
    })
    const [run] = runs
    if (!run || 'type' in run) throw new Error(`untrusted: ${JSON.stringify(run)}`)
    const filed = run.entries.map((entry) => ({ ref, entry, deadline: 0 }))
    for (const verdict of await append(journal, filed)) expect(verdict.type).toBe('appended')
    decided.push(...run.entries)
  }
  return decided
}

/** As the engine reads it: what is charged by now. */
async function withCharge(ref: string, command: Command): Promise<Command> {
  if (command.kind !== 'refund') return command
  const charges = (await journal.entries(ref, 1, 1_000)).filter(({ kind }) =>
    ['debit', 'capture', 'tick'].includes(kind),
  )
  const of = charges[command.of % Math.max(1, charges.length)]?.seq ?? command.of
  return makeCommand({ ...command, of, ...(await journal.charge(ref, of)) })
}
