import { shareOf } from '../packages/holdfast/src/api/sale/terms.js'
import type { Snapshot } from '../packages/holdfast/src/journal/index.js'
import { command, decide, genesisHash, MAX_AMOUNT } from '../packages/holdfast/src/machine/index.js'
import type { Place } from '../packages/holdfast/src/redis/index.js'
import { Sequencer } from '../packages/holdfast/src/sequencer/index.js'
import type { Telemetry } from '../packages/holdfast/src/telemetry/index.js'
import { Onlooker } from './audits.js'
import { Buyers, bucketsOf, QUANTITIES, STOCK } from './buyers.js'
import type { Operation } from './caller.js'
import { check, checkFound } from './checker.js'
import { Clients } from './clients.js'
import type { Commit } from './commits.js'
import type { SimDatabase } from './database.js'
import { Faults } from './faults.js'
import { Oddities } from './oddities.js'
import { Openings, openRequest } from './openings.js'
import { Operator } from './operator.js'
import { Payers } from './payers.js'
import { checkPayments, refusedPayments } from './payment-checker.js'
import { keys, Process, type Weather } from './process.js'
import { checkSale } from './sale-checker.js'
import { type Machines, Servers } from './servers.js'
import { judgeSessions } from './sessions.js'
import { checkTransfers, refusedHolds } from './transfer-checker.js'
import { Transferers } from './transfers.js'
import type { Valkey } from './valkey.js'
import { Chance, World } from './world.js'

export const OPERATIONS = 200
const PROCESSES = 3
/** Operations of those who buy, where there is a sale. */
const PURCHASES = 120
const SALES = 0x5a1e5
const PAYMENTS = 0xba11
/** Then everything heals, whether callers are done or not. */
const FAULTY_MS = 30_000
const RESTS_MS = 5_000
const RESTS_MAX_MS = 240_000
const SLEEPS_MAX_MS = 180_000

export interface SimulationResult {
  readonly seed: number
  readonly problems: string[]
  readonly operations: number
  readonly entries: number
  readonly simulatedMs: number
  /** How often each thing happened that the engine has to set right. */
  readonly counts: ReadonlyMap<string, number>
  readonly trace: readonly string[]
}

/** One schedule: callers, processes and faults as the seed has them; then everything heals, and the history is judged. */
export async function simulate(seed: number, machines: Machines, traced = false): Promise<SimulationResult> {
  const world = new World(seed, traced)
  const { chance } = world
  const started = world.now
  const counts = new Map<string, number>()
  const note = (name: string, times: number): void => void counts.set(name, (counts.get(name) ?? 0) + times)
  const telemetry: Telemetry = {
    count: (metric, labels = {}, by = 1) => {
      note(labels.what ?? labels.verdict ?? labels.answer ?? metric, by)
    },
    log: (level, event, facts) => world.tell(() => `${level} ${event} ${JSON.stringify(facts ?? {})}`),
  }
  const servers = await Servers.start(world, machines)
  const { database } = servers.postgres
  const commits = new Map<string, Commit>()
  database.onEntry = ({ hash }) => {
    commits.set(hash, { first: commits.get(hash)?.first ?? world.now, last: world.now })
  }

  const ids = Array.from({ length: chance.integer(1, 4) }, (_, n) => `wallet-${n + 1}`)
  const lateIds = chance.happens(0.3) ? [ids.pop() as string] : []
  for (const id of ids) database.open(openRequest(id))
  // So full that what arrives is refused now and then, and accepted a moment later.
  const full = ids.length > 0 && chance.happens(0.4) ? chance.pick(ids) : null
  if (full) fill(database, keys.ref(full), MAX_AMOUNT - chance.integer(0, 30))
  ids.push(...lateIds)
  const remembers = chance.happens(0.25)
  const memoryWallets = new Set(chance.happens(remembers ? 0.8 : 0.3) ? ids.filter(() => chance.happens(0.5)) : [])

  // A sale beside the wallets, in some schedules; decided by a chance of its own, so that the others stay as they are.
  const saleId = new Chance(seed ^ SALES).happens(0.35) ? 'sale-1' : null
  const buckets = saleId === null ? [] : bucketsOf(saleId, seed)
  for (const [bucket, place] of buckets.entries()) openBucket(database, place, bucket, buckets.length)
  if (buckets.length > 1) note('sales_with_buckets', 1)

  const weather: Weather = { lossy: 0, slow: 0, contended: 0, evicting: 0 }
  let processes: Process[] = []
  let born = 0
  const start = (): void => {
    processes = [
      ...processes.filter(({ alive }) => alive),
      new Process(`process-${++born}`, world, servers, weather, telemetry),
    ]
  }
  for (let n = 0; n < PROCESSES; n += 1) start()
  const about = { servers, remembers, processes: () => processes }
  const faults = new Faults(world, {
    ...about,
    weather,
    replace: () => world.plan(chance.next() * 1_000, start),
    note: (fault, times = 1) => note(`fault_${fault}`, times),
  })
  const oddities = new Oddities(world, { ...about, note: (oddity) => note(`fault_${oddity}`, 1) })
  const operator = new Operator(
    world,
    servers,
    () => processes,
    (what, times = 1) => note(`operator_${what}`, times),
  )
  const clients = new Clients(world, ids, memoryWallets, OPERATIONS, () => processes)
  const buyers = saleId === null ? null : new Buyers(world, buckets, seed ^ SALES, PURCHASES, () => processes)
  if (saleId !== null) evictStock(world, servers, saleId, new Chance(~seed ^ SALES))
  const openings = new Openings(world, lateIds, () => processes)
  const transferers = new Transferers(world, ids, full, {
    processes: () => processes,
    strike: (process) => faults.strike(process),
  })
  const payers =
    buyers &&
    new Payers(world, seed ^ PAYMENTS, ids, buyers, {
      processes: () => processes,
      strike: (process) => faults.strike(process),
    })
  const done = (): boolean =>
    clients.done && openings.done && transferers.done && (buyers?.done ?? true) && (payers?.done ?? true)

  const onlooker = new Onlooker(world, servers, seed, (own) => own.pick([servers.master, own.pick(processes).redis]))
  onlooker.start()

  await world.run(started + FAULTY_MS, done)
  const healedAt = world.now
  faults.heal()
  oddities.heal()
  world.tell(() => 'all is well again')
  const problems: string[] = []
  await world.run(world.now + 300_000, done)
  if (!done()) problems.push('callers still wait for an answer')
  await world.run(world.now + SLEEPS_MAX_MS, () => processes.every(({ alive, paused }) => !alive || !paused))
  await world.run(world.now + 60_000, () => !database.stopped)
  if (database.stopped) problems.push('it was never reconciled')
  // A replica that lagged may have lost the opening of a wallet: its callers open it again.
  for (const id of lateIds) database.open(openRequest(id))
  problems.push(...(await rest(world, servers)))
  problems.push(...(await abandoned(world, servers)))
  for (const id of ids) await closingCredit(world, processes, keys.of(id), id, problems)
  for (const place of buckets) await closingCredit(world, processes, place, `bucket ${place.ref}`, problems)
  await rest(world, servers)

  await onlooker.conclude()
  problems.push(...onlooker.problems)
  note('audits', onlooker.audits)
  note('audited_hot', onlooker.hot)

  const history = [...clients.history, ...(buyers?.history ?? [])]
  for (const { heard, command: asked } of history) {
    note(`heard_${heard.type}`, 1)
    if (heard.type === 'yes') note(`done_${asked.kind}`, 1)
    else if (heard.type === 'no') note(`told_${heard.error.code}`, 1)
  }
  for (const { heard } of transferers.history) note(`transfer_${heard.type}`, 1)
  const payments = payers?.history ?? []
  for (const { heard } of payments) note(`payment_${heard.type === 'no' ? `no_${heard.error.code}` : heard.type}`, 1)
  note('opened_late', openings.openedAt.size)
  const { lostHashes, lostAt } = servers.postgres
  problems.push(
    // Whether a sale was sold out, no bucket knows by itself.
    ...check(
      database.wallets(),
      [...history.filter(soundsAlone), ...refusedHolds(transferers.history), ...refusedPayments(payments)],
      {
        commits,
        commitsAreExact: true,
        redisForgotAt: (ref) => servers.redisForgotAt(keys.place(ref)),
        lostHashes,
        lostAt,
        openings,
      },
    ),
  )
  problems.push(...servers.problems)
  if (operator.stoppedAt < healedAt) problems.push(...unanswered(history, healedAt + RESTS_MS))
  problems.push(...checkFound(database.wallets(), history, lostHashes, operator))
  // What a lagging replica lost may be one half of a transfer, or of a purchase: nobody promises anything then.
  if (lostAt.size === 0) {
    problems.push(...checkTransfers(database.wallets(), transferers.history, database.intents.size, commits))
    problems.push(...checkPayments(database.wallets(), payments, database.payments.size, commits))
  }
  if (lostAt.size === 0 && buyers) {
    const opened = { refs: buckets.map(({ ref }) => ref), quantities: QUANTITIES, total: STOCK }
    problems.push(...checkSale(database.wallets(), opened, buyers.history, commits))
  }
  let entries = 0
  for (const wallet of database.wallets()) {
    entries += wallet.entries.length
    const ofWallet = clients.history.filter(({ ref }) => ref === wallet.row.ref)
    const judged = judgeSessions(wallet.entries, ofWallet)
    for (const problem of judged.problems) problems.push(`${wallet.row.id}: ${problem}`)
    for (const what of judged.events) note(what, 1)
  }
  return {
    seed,
    problems,
    operations: history.length,
    entries,
    simulatedMs: world.now - started,
    counts,
    trace: world.trace,
  }
}

/**
 * What nobody touches must come to rest by itself: what is pending gets appended, what is due expires. Every lease, spell and sweep is
 * over within the first seconds; then only holds are waited for, and not longer than any lasts and clocks were wrong.
 */
async function rest(world: World, { postgres }: Servers): Promise<string[]> {
  const began = world.now
  await world.run(began + RESTS_MS, () => false)
  const { database } = postgres
  const rests = (): boolean =>
    database.intents.size === 0 &&
    database.payments.size === 0 &&
    [...database.wallets()].every(({ row }) => row.since === 0)
  await world.run(began + RESTS_MAX_MS, rests)
  if (rests()) return []
  // A transfer's hold runs out by no clock; it may have outlived the note of the transfer, if that went with a primary.
  const overdue = [...database.wallets()].filter(({ row: { since, due } }) => since > 0 && due > 0 && due < world.now)
  return overdue.map(({ row: { id } }) => `${id}: a hold did not run out by itself`)
}

/** A sale has two keys: in some schedules one of them goes alone, now and then. */
function evictStock(world: World, servers: Servers, id: string, chance: Chance): void {
  if (!chance.happens(0.4)) return
  for (let n = chance.integer(1, 4); n > 0; n -= 1) {
    world.plan(chance.next() * 15_000, () => servers.evictKey(keys.ofSale(id, 0).stockKey))
  }
}

function openBucket(database: SimDatabase, { ref }: Place, bucket: number, buckets: number): void {
  const currency = 'stock'
  const id = 'sale-1'
  database.open({ ref, tenant: 'sim', id, currency, creditLimit: 0, metadata: '', head: genesisHash(ref, currency) })
  fill(database, ref, shareOf(STOCK, 0, bucket, buckets))
}

/** Once all has been well for a while nobody is left in doubt. */
function unanswered(history: readonly Operation[], from: number): string[] {
  return history.flatMap(({ heard, startedAt, command: { key, params } }) =>
    heard.type === 'unknown' && startedAt > from ? [`${key} (${params}) got no answer, though all was well`] : [],
  )
}

const soundsAlone = ({ heard, buckets }: Operation): boolean =>
  heard.type !== 'no' || heard.error.code !== 'sold_out' || (buckets?.places.length ?? 1) === 1

function fill(database: SimDatabase, ref: string, amount: number): void {
  const [raised] = database.raise([{ ref, epochMin: 0, memory: false, known: null }])
  const { state, clock } = raised as Snapshot
  const { entries } = decide(state, command({ kind: 'credit', key: 'filled', amount }), clock)
  database.append([{ ref, entries, deadlines: [0], places: [0] }])
}

/** What Redis has decided and the journal will never take is put right, also where nobody asks for the wallet any more. */
async function abandoned(world: World, { master, postgres }: Servers): Promise<string[]> {
  const runner = { run: async (...call: Parameters<Valkey['run']>) => master.valkey.run(...call) }
  const sequencer = new Sequencer(runner, {
    aheadMaxMs: 0,
    helpAfterMs: 0,
    idleAfterMs: 0,
    pendingMax: 0,
    now: () => 0,
  })
  const problems: string[] = []
  for (const { row, entries } of postgres.database.wallets()) {
    const place = keys.place(row.ref)
    const { why, core, pending } = await sequencer.look(place, 0, 'nobody', 0)
    // The agenda was evicted alone: that is for audits to find.
    if (master.valkey.call('ZSCORE', place.agendaKey, place.agendaName) === null) continue
    // A wallet's time may be ahead of the clock: then nobody's turn has come to look after it.
    if (!core || Math.max(core.at, core.clock) > world.now + master.skewMs - RESTS_MS) continue
    const hashes = new Set(entries.map(({ hash }) => hash))
    // Of a state that nobody believes any more, what was acknowledged from memory counts.
    const left = pending.filter(({ entry, memory }) => (why === 'trusted' || memory) && !hashes.has(entry.hash))
    if (left.length > 0) problems.push(`${row.id}: Redis was left with ${left.length} entries that are in no journal`)
  }
  return problems
}

/** A wallet that nobody can use any more is as bad as a wrong one. */
async function closingCredit(
  world: World,
  processes: readonly Process[],
  place: Place,
  id: string,
  problems: string[],
): Promise<void> {
  const alive = processes.filter(({ alive }) => alive)
  for (const process of alive) {
    let heard: string | undefined
    process.engine
      .submit(place, command({ kind: 'credit', key: `closing-${process.name}`, amount: 1 }), {
        memory: false,
      })
      .then(
        () => {
          heard = 'yes'
        },
        (error) => {
          heard = String(error?.code ?? error)
        },
      )
    await world.run(world.now + 20_000, () => heard !== undefined)
    if (heard !== 'yes' && heard !== 'wallet_closed' && heard !== 'invalid_amount')
      problems.push(`${id} is stuck at ${process.name}: ${heard ?? 'no answer'}`)
  }
}
