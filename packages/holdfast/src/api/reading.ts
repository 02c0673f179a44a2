import { HoldfastError } from '../errors/index.js'
import { type HoldReading, type HoldStatus, holdAfter, type WalletHead } from '../journal/index.js'
import type { Entry as MachineEntry } from '../machine/index.js'
import type { Look } from '../sequencer/index.js'
import { reading } from './reads.js'
import { type Entry, entryOf, type HoldFacts } from './receipt.js'
import type { Tenant } from './tenant.js'
import * as check from './validate.js'
import { WAIT_NAMES, type WaitOptions } from './waiting.js'

export const PAGE_MAX = 1_000
export const PAGE_DEFAULT = 100
/** The last moment that a Date can name; the first is as long before 1970. */
const TIME_MAX_MS = 8_640_000_000_000_000

export interface ReadOptions extends WaitOptions {
  /** What Redis has decided, committed or not; without Redis what is committed. Default false: what is committed. */
  readonly pending?: boolean
}

export interface PageOptions extends ReadOptions {
  /** What comes after this seq. Default 0: from the beginning. */
  readonly after?: number
  /** How many at most, 1 to 1,000. Default 100. */
  readonly limit?: number
}

export const READ_NAMES = check.namesOf<ReadOptions>({ pending: true, timeout: true, signal: true })
export const PAGE_NAMES = check.namesOf<PageOptions>({
  after: true,
  limit: true,
  pending: true,
  timeout: true,
  signal: true,
})

/** A hold as it stands, open or closed. */
export interface HoldState extends HoldFacts {
  readonly status: HoldStatus
  /** Given back out of what was captured, by refunds. */
  readonly refunded: number
  /** The entry that made it. */
  readonly seq: number
  readonly madeAt: number
  readonly closedAt?: number
  /** As given when it was made. */
  readonly metadata?: unknown
}

export interface AtOptions extends WaitOptions {
  /** After this entry; 0: before the first. */
  readonly seq?: number
  /** At the end of this millisecond: since 1970, or a Date. Before the first entry the balance is zero. */
  readonly time?: number | Date
}

const AT_NAMES = check.namesOf<AtOptions>({ seq: true, time: true, timeout: true, signal: true })

/** A balance of the past: as it stood after the entry `seq`. */
export interface PastBalance {
  readonly id: string
  readonly currency: string
  /** 0: before the first entry. */
  readonly seq: number
  /** When that entry was made; before the first, when the wallet was opened. */
  readonly at: number
  readonly available: number
  readonly reserved: number
  /** The hash of that entry. */
  readonly head: string
  /** Nothing that was done by then can come any more. False: the journal has nothing later yet, and something may be on its way. */
  readonly complete: boolean
}

export async function readHolds(tenant: Tenant, walletId: string, given: unknown): Promise<HoldState[]> {
  const options = check.options('options', given, PAGE_NAMES)
  const { after, limit } = page(options)
  const pending = check.flag('pending', options.pending)
  return reading(tenant, options, async () => {
    const { ref } = tenant.keys.of(walletId)
    const look = pending ? await lookAt(tenant, walletId) : null
    // As many more as may turn out to be closed.
    const found = await tenant.reader.openHolds(ref, after, limit + (look?.pending.length ?? 0))
    if (!found) return []
    const open = new Map(found.holds.map((hold) => [hold.id, hold]))
    const mayBeMore = found.holds.length >= limit + (look?.pending.length ?? 0)
    for (const entry of decidedSince(look, found.wallet)) {
      const before = open.get(entry.hold)
      // A hold before or behind this page.
      if (!before && (entry.kind !== 'hold' || mayBeMore || entry.seq <= after)) continue
      const hold = holdAfter(before ?? null, entry)
      if (hold.status === 'open') open.set(hold.id, hold)
      else open.delete(hold.id)
    }
    return [...open.values()].slice(0, limit).map(holdStateOf)
  })
}

export async function readHold(
  tenant: Tenant,
  walletId: string,
  id: string,
  given: unknown,
): Promise<HoldState | null> {
  const options = check.options('options', given, READ_NAMES)
  const pending = check.flag('pending', options.pending)
  return reading(tenant, options, async (stop) => {
    const { ref } = tenant.keys.of(walletId)
    const look = pending ? await lookAt(tenant, walletId) : null
    const found = await tenant.reader.findHold(ref, id)
    if (!found) return null
    const { made } = found
    let hold = made && (await tenant.reader.readHold(ref, { ...found, made }, stop))
    for (const entry of decidedSince(look, found.wallet)) {
      if (entry.hold === id) hold = holdAfter(hold, entry)
    }
    return hold && holdStateOf(hold)
  })
}

export async function readEntries(tenant: Tenant, walletId: string, given: unknown): Promise<Entry[]> {
  const options = check.options('options', given, PAGE_NAMES)
  const { after, limit } = page(options)
  const pending = check.flag('pending', options.pending)
  return reading(tenant, options, async () => {
    const { ref } = tenant.keys.of(walletId)
    const look = pending ? await lookAt(tenant, walletId) : null
    const [row] = look ? await tenant.journal.read([ref]) : []
    const entries = await tenant.journal.entries(ref, after + 1, limit)
    for (const entry of row ? decidedSince(look, row) : []) {
      const last = entries.at(-1)
      const follows = last ? entry.prev === last.hash : entry.seq > after
      if (follows && entries.length < limit) entries.push(entry)
    }
    return entries.map(entryOf)
  })
}

/** By its index: however long the journal is. */
export async function readEntryOf(
  tenant: Tenant,
  walletId: string,
  key: unknown,
  given: unknown,
): Promise<Entry | null> {
  const wanted = { ref: tenant.keys.ref(walletId), key: check.text('key', key) }
  return reading(tenant, check.options('options', given, WAIT_NAMES), async () => {
    const [entry] = await tenant.journal.find([wanted])
    return entry ? entryOf(entry) : null
  })
}

export async function readBalanceAt(tenant: Tenant, walletId: string, given: unknown): Promise<PastBalance | null> {
  const options = check.options('options', given, AT_NAMES)
  const when = momentOf(options)
  return reading(tenant, options, async () => {
    const found = await tenant.reader.balanceAt(tenant.keys.ref(walletId), when)
    if (!found) return null
    const { lastSeq, seq, ...rest } = found
    if (seq === null) {
      throw new HoldfastError('entry_not_found', `seq: expected one up to ${lastSeq}, the last there is`, { lastSeq })
    }
    return { id: walletId, seq, ...rest }
  })
}

function momentOf({ seq, time }: Record<string, unknown>): { seq: number } | { timeMs: number } {
  if ((seq === undefined) === (time === undefined)) {
    throw check.invalid('options', 'either seq or time', seq === undefined ? 'neither' : 'both')
  }
  if (seq !== undefined) return { seq: check.integer('seq', seq, 0, Number.MAX_SAFE_INTEGER) }
  return { timeMs: check.integer('time', time instanceof Date ? time.getTime() : time, -TIME_MAX_MS, TIME_MAX_MS) }
}

function page({ after = 0, limit = PAGE_DEFAULT }: Record<string, unknown>): { after: number; limit: number } {
  return {
    after: check.integer('after', after, 0, Number.MAX_SAFE_INTEGER - 1),
    limit: check.integer('limit', limit, 1, PAGE_MAX),
  }
}

/** Before the journal is read: what Redis then has beside it can only be missing less, never more. */
export async function lookAt(
  { keys, engine, sequencer }: Tenant,
  walletId: string,
  epochMin = 0,
): Promise<Look | null> {
  const place = keys.of(walletId)
  // Each would wait for an answer that does not come.
  if (engine.isRedisAway(place)) return null
  return sequencer.look(place, epochMin, '', 0).catch(() => null)
}

/** What Redis has decided on top of what the journal has: entries that continue it to the letter. Anything else is a life that is over. */
export function decidedSince(look: Look | null, { epoch, seq, head }: WalletHead): MachineEntry[] {
  if (look?.why !== 'trusted' || look.epoch !== epoch) return []
  const entries: MachineEntry[] = []
  let prev = head
  for (const { entry } of look.pending) {
    if (entry.seq <= seq) continue
    if (entry.prev !== prev) return []
    entries.push(entry)
    prev = entry.hash
  }
  return entries
}

export function holdStateOf(hold: HoldReading): HoldState {
  return {
    id: hold.id,
    status: hold.status,
    amount: hold.amount,
    captured: hold.captured,
    left: hold.left,
    refunded: hold.refunded,
    expiresAt: hold.expiresAt,
    seq: hold.seq,
    madeAt: hold.madeAt,
    ...(hold.closedAt > 0 && { closedAt: hold.closedAt }),
    ...(hold.metadata !== '' && { metadata: JSON.parse(hold.metadata) }),
  }
}
