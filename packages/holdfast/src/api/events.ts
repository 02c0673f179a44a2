import { createHash } from 'node:crypto'
import type { FeedItem, FeedRow, FeedSale } from '../journal/index.js'
import { isShort, type Entry as MachineEntry, readMeter, usedBy } from '../machine/index.js'
import { entryOf } from './receipt.js'
import { SALE_EVENT_NAMES, saleFacts, saleNotice } from './sale/events.js'

/** What can be told of wallets. Each follows from the journal alone, or is noted beside it: so every process tells the same. */
export const WALLET_EVENT_NAMES = [
  'entry.appended',
  'balance.low',
  'hold.expiring',
  'hold.expired',
  'session.final',
  'audit.finding',
] as const

export const EVENT_NAMES = [...WALLET_EVENT_NAMES, ...SALE_EVENT_NAMES] as const

export type EventName = (typeof EVENT_NAMES)[number]

export interface WalletEvent {
  /** The same whenever it is told again: what was seen before can be left out by it. */
  readonly id: string
  readonly event: EventName
  /** Milliseconds since 1970. */
  readonly at: number
  /** Null: it is about a sale, or a finding about no wallet that there is. */
  readonly wallet: string | null
  /** Of what is about a sale: that, by its id. */
  readonly sale?: string
  readonly [fact: string]: unknown
}

/** What an item of the feed comes to. `balanceLow`: below what, for who wants to know. */
export function eventsOf({ at }: Pick<FeedRow, 'at'>, item: FeedItem, balanceLow: number | null): WalletEvent[] {
  const { wallet, sale, entry, notice } = item
  if (sale && notice?.event !== 'audit.finding') return ofSale(at, sale, item)
  if (notice && sale) return [{ ...noticed(at, null, notice), sale: sale.id }]
  if (notice) return [noticed(at, wallet, notice)]
  if (!entry) return []
  const told: [EventName, Record<string, unknown>][] = [['entry.appended', { entry: entryOf(entry) }]]
  if (entry.kind === 'expire') told.push(['hold.expired', expiredFacts(entry)])
  const final = finalFacts(entry)
  if (final) told.push(['session.final', final])
  if (balanceLow !== null && passesDown(entry, balanceLow)) {
    told.push(['balance.low', { seq: entry.seq, available: entry.available, threshold: balanceLow }])
  }
  return told.map(([event, facts]) => ({ id: `${entry.hash}:${event}`, event, at: entry.at, wallet, ...facts }))
}

function ofSale(at: number, sale: FeedSale, { entry, notice }: FeedItem): WalletEvent[] {
  if (notice) {
    const { id, facts } = saleNotice(sale, notice)
    const event = notice.event as EventName
    return [{ id: `${id}:${event}`, event, at, wallet: null, sale: sale.id, ...facts }]
  }
  if (!entry) return []
  return saleFacts(sale, entry).map(([event, facts]) => {
    return { id: `${entry.hash}:${event}`, event, at: entry.at, wallet: null, sale: sale.id, ...facts }
  })
}

/** Once on the way down: below it now, and not before. */
const passesDown = ({ available, availableDelta }: MachineEntry, threshold: number): boolean =>
  available < threshold && available - availableDelta >= threshold

function expiredFacts(entry: MachineEntry): Record<string, unknown> {
  const { seq, hold, holdCaptured: captured, availableDelta: returned } = entry
  return { seq, hold, captured, returned }
}

/**
 * There is no money to set aside what should be, and before this entry there was. How the hold stood before follows from the entry: what it
 * added came out of `available`, what it charged is its amount.
 */
function finalFacts(entry: MachineEntry): Record<string, unknown> | null {
  if (entry.kind !== 'hold' && entry.kind !== 'tick') return null
  const meter = readMeter(entry.params)
  if (!meter) return null
  const {
    seq,
    hold,
    holdAmount: reserved,
    holdCaptured: charged,
    holdLeft: left,
    availableDelta,
    reservedDelta,
  } = entry
  // A start has charged nothing, and its measure is what must be there to begin.
  const used = entry.kind === 'tick' ? usedBy(meter, charged, entry.at) : 0
  if (!isShort(meter, reserved, used)) return null
  const before = charged + availableDelta + reservedDelta
  if (entry.kind === 'tick' && isShort(meter, reserved + availableDelta, before)) return null
  return { seq, session: hold, charged, reserved, left }
}

function noticed(
  at: number,
  wallet: string | null,
  { event, id, ...facts }: NonNullable<FeedItem['notice']>,
): WalletEvent {
  const named =
    typeof id === 'string'
      ? id
      : createHash('sha1')
          .update(JSON.stringify([wallet, facts]))
          .digest('hex')
  return { id: `${named}:${event}`, event: event as EventName, at, wallet, ...facts }
}
