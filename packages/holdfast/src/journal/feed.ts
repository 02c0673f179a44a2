import { type Entry, readLinesText } from '../machine/index.js'
import type { Postgres } from '../postgres/index.js'
import { type EntryRow, readEntry } from './rows.js'

/** What is no entry, as it was noted: `event` and its facts. */
export type Notice = { readonly event: string } & Readonly<Record<string, unknown>>

/** A sale, and its items that were met with, by their numbers. */
export interface FeedSale {
  readonly id: string
  readonly buckets: number
  readonly itemIds: ReadonlyMap<number, string>
}

/** One thing that happened: an entry, or a notice. */
export interface FeedItem {
  /** Its place in the row: which of its runs, and how far into that. */
  readonly run: number
  readonly offset: number
  /** Null: there is no such wallet, or it is about none. */
  readonly wallet: string | null
  /** Null: it is about none. */
  readonly sale: FeedSale | null
  readonly entry: Entry | null
  readonly notice: Notice | null
}

/** A row of the feed: what happened to wallets and sales of one tenant, about at the same time. */
export interface FeedRow {
  readonly position: number
  readonly mark: number
  readonly tenant: string
  readonly at: number
  readonly items: readonly FeedItem[]
}

export interface FeedHead {
  readonly position: number
  readonly mark: number
}

export interface Relayed extends FeedHead {
  readonly relayed: number
  /** There may be more to relay. */
  readonly more: boolean
  /** Whether appends are noted at all. */
  readonly feeding: boolean
}

export interface FeedQuestion {
  readonly tenants: readonly string[]
  readonly after: number
  readonly upTo: number
  /** Those of the tenants of which sales are wanted as well. Default: of none. */
  readonly salesOf?: readonly string[]
  /** Only what is about this wallet, or this sale, of the one tenant. */
  readonly wallet?: string | null
  readonly sale?: string | null
}

interface ItemRow extends Omit<EntryRow, 'seq'> {
  seq: string | null
  feed_position: string
  mark: number
  tenant: string
  size: number
  fed_at: string
  n: string | null
  first: string | null
  notice: Notice | null
  wallet_id: string | null
  sale_id: string | null
  buckets: number | null
  prev_hex: string
}

/** Rows that one statement relays or reads, and entries after which it reads no further row. */
const RELAY_ROWS = 200
const READ_ROWS = 200
const READ_ENTRIES = 1_000
/** Positions are those of all tenants: so many are looked through for those of some. */
const READ_SPAN = 20_000
const PRUNE_ROWS = 1_000
/** Wallets that one statement looks at for holds that are about to run out. */
const EXPIRING_WALLETS = 500

/** What wallets did, in an order that nobody can be passed over in. See sql/0007_events.sql. */
export class PostgresFeed {
  readonly #postgres: Postgres

  constructor(postgres: Postgres) {
    this.#postgres = postgres
  }

  /** From now on what happens is noted, for so long after somebody was last here to read it. */
  async start(keepMs: number): Promise<void> {
    await this.#postgres.query('startFeed', [keepMs])
  }

  /** Gives a position to what was committed and has none yet, unless somebody else is at it. */
  async relay(keepMs: number): Promise<Relayed> {
    const [row] = await this.#postgres.query<{
      head: string
      mark: number | null
      relayed: number
      more: boolean
      feeding: boolean
    }>('relayFeed', [RELAY_ROWS, keepMs])
    if (!row) throw new Error('The feed has a head')
    const { relayed, more, feeding, mark } = row
    return { position: Number(row.head), mark: mark ?? 0, relayed, more, feeding }
  }

  /** The mark at a position, null if the feed does not have it (any more), and how far the feed goes. */
  async markAt(position: number): Promise<{ mark: number | null; head: number }> {
    const [row] = await this.#postgres.query<{ mark: number | null; head: string }>('feedMark', [position])
    if (!row) throw new Error('The feed has a head')
    return { mark: row.mark, head: Number(row.head) }
  }

  /** The oldest row that is kept. */
  async oldest(): Promise<FeedHead> {
    const [row] = await this.#postgres.query<{ position: string; mark: number }>('oldestFeed', [])
    return { position: Number(row?.position ?? 0), mark: row?.mark ?? 0 }
  }

  /** Rows in their order, and up to which position these are all that there are. */
  async read(question: FeedQuestion): Promise<{ rows: FeedRow[]; end: number }> {
    const { tenants, after, upTo, salesOf = [], wallet = null, sale = null } = question
    const last = Math.min(upTo, after + READ_SPAN)
    const values = [tenants, after, last, READ_ROWS, READ_ENTRIES, wallet, salesOf, sale]
    const found = await this.#postgres.query<ItemRow>('readFeed', values)
    const { rows, size } = readRows(found, await this.#itemIds(found))
    const cut = rows.length === READ_ROWS || size >= READ_ENTRIES
    return { rows, end: cut ? (rows.at(-1) as FeedRow).position : last }
  }

  /** Entries name items by their numbers. Costs nothing where there is nothing of sales. */
  async #itemIds(found: readonly ItemRow[]): Promise<ItemIds> {
    const wanted = new Map<string, [tenant: string, sale: string, item: number]>()
    for (const { tenant, sale_id: sale, metadata, kind } of found) {
      if (sale === null || !metadata || !LISTING.has(kind)) continue
      for (const { item } of readLinesText(metadata)) wanted.set(`${tenant} ${item} ${sale}`, [tenant, sale, item])
    }
    const ids: ItemIds = new Map()
    if (wanted.size === 0) return ids
    const all = [...wanted.values()]
    const columns = [all.map(([tenant]) => tenant), all.map(([, sale]) => sale), all.map(([, , item]) => item)]
    const rows = await this.#postgres.query<{ tenant: string; sale: string; item: number; id: string }>(
      'feedItems',
      columns,
    )
    for (const { tenant, sale, item, id } of rows) itemIdsOf(ids, tenant, sale).set(item, id)
    return ids
  }

  /** Notices about wallets, by their refs; `tenant` for those about no wallet. Not kept where nobody asks for events. */
  async note(notices: readonly { ref: string | null; tenant: string; notice: Notice }[]): Promise<void> {
    const refs = notices.map(({ ref }) => ref)
    const texts = notices.map(({ notice }) => JSON.stringify(notice))
    await this.#postgres.query('noteNotices', [refs, notices.map(({ tenant }) => tenant), texts])
  }

  /** Notes holds that run out within so long, of some wallets that were not looked at since. True: there may be more. */
  async noteExpiring(leadMs: number): Promise<boolean> {
    const [row] = await this.#postgres.query<{ looked: number }>('noteExpiring', [leadMs, EXPIRING_WALLETS])
    return row?.looked === EXPIRING_WALLETS
  }

  async prune(keepMs: number): Promise<void> {
    await this.#postgres.query('pruneFeed', [keepMs, PRUNE_ROWS])
  }
}

/** By tenant and sale. */
type ItemIds = Map<string, Map<number, string>>

/** Kinds of entries of sales that say in their metadata what is in a checkout, or was bought. */
const LISTING: ReadonlySet<string> = new Set(['hold', 'extend', 'settle'])

function itemIdsOf(ids: ItemIds, tenant: string, sale: string): Map<number, string> {
  // No tenant has a blank in it.
  const name = `${tenant} ${sale}`
  const known = ids.get(name) ?? new Map<number, string>()
  ids.set(name, known)
  return known
}

function readRows(found: readonly ItemRow[], itemIds: ItemIds): { rows: FeedRow[]; size: number } {
  const rows: (FeedRow & { items: FeedItem[] })[] = []
  let size = 0
  for (const row of found) {
    const position = Number(row.feed_position)
    if (rows.at(-1)?.position !== position) {
      rows.push({ position, mark: row.mark, tenant: row.tenant, at: Number(row.fed_at), items: [] })
      size += row.size
    }
    const item = readItem(row, itemIds)
    if (item) rows.at(-1)?.items.push(item)
  }
  return { rows, size }
}

function readItem(row: ItemRow, itemIds: ItemIds): FeedItem | null {
  const { n, first, notice, wallet_id: wallet, sale_id: id } = row
  if (n === null) return null
  const run = Number(n)
  const sale = id === null ? null : { id, buckets: row.buckets ?? 1, itemIds: itemIdsOf(itemIds, row.tenant, id) }
  if (notice !== null) return { run, offset: 0, wallet, sale, entry: null, notice }
  // A journal that somebody has damaged: audits tell of that.
  if (row.seq === null) return null
  const entry = readEntry({ ...row, seq: row.seq }, row.prev_hex)
  return { run, offset: entry.seq - Number(first), wallet, sale, entry, notice: null }
}
