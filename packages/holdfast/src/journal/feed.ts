import type { Entry } from '../machine/index.js'
import type { Postgres } from '../postgres/index.js'
import { type EntryRow, readEntry } from './rows.js'

/** What is no entry, as it was noted: `event` and its facts. */
export type Notice = { readonly event: string } & Readonly<Record<string, unknown>>

/** One thing that happened: an entry, or a notice. */
export interface FeedItem {
  /** Its place in the row: which of its runs, and how far into that. */
  readonly run: number
  readonly offset: number
  /** Null: there is no such wallet, or the notice is about none. */
  readonly wallet: string | null
  readonly entry: Entry | null
  readonly notice: Notice | null
}

/** A row of the feed: what happened to wallets of one tenant, about at the same time. */
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
  /** Only what is about this wallet of the one tenant. */
  readonly wallet?: string | null
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
  async read({ tenants, after, upTo, wallet = null }: FeedQuestion): Promise<{ rows: FeedRow[]; end: number }> {
    const last = Math.min(upTo, after + READ_SPAN)
    const values = [tenants, after, last, READ_ROWS, READ_ENTRIES, wallet]
    const { rows, size } = readRows(await this.#postgres.query<ItemRow>('readFeed', values))
    const cut = rows.length === READ_ROWS || size >= READ_ENTRIES
    return { rows, end: cut ? (rows.at(-1) as FeedRow).position : last }
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

function readRows(found: readonly ItemRow[]): { rows: FeedRow[]; size: number } {
  const rows: (FeedRow & { items: FeedItem[] })[] = []
  let size = 0
  for (const row of found) {
    const position = Number(row.feed_position)
    if (rows.at(-1)?.position !== position) {
      rows.push({ position, mark: row.mark, tenant: row.tenant, at: Number(row.fed_at), items: [] })
      size += row.size
    }
    const item = readItem(row)
    if (item) rows.at(-1)?.items.push(item)
  }
  return { rows, size }
}

function readItem(row: ItemRow): FeedItem | null {
  const { n, first, notice, wallet_id: wallet } = row
  if (n === null) return null
  const run = Number(n)
  if (notice !== null) return { run, offset: 0, wallet, entry: null, notice }
  // A journal that somebody has damaged: audits tell of that.
  if (row.seq === null) return null
  const entry = readEntry({ ...row, seq: row.seq }, row.prev_hex)
  return { run, offset: entry.seq - Number(first), wallet, entry, notice: null }
}
