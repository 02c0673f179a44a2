import type { Entry, EntryKind } from '../machine/index.js'
import type { Postgres } from '../postgres/index.js'
import { type HoldReading, statusAfterEntry } from './hold-reading.js'
import { type EntryRow, type HoldRow, readEntry, readHold, readWalletRow, type WalletTableRow } from './rows.js'
import type { WalletRow } from './types.js'

/**
 * How many entries of a wallet one statement looks through for those of a hold. A stretch takes Postgres 0.8 ms, so a hold that lived
 * while its wallet made 100,000 other entries is explained with 17 ms of its time, and within 40 ms.
 *
 * An index on (wallet, hold) of the entries that are not `hold` themselves would answer at once; it cost every append 2 to 5 µs an
 * entry of 24, and 85 bytes of WAL of 750, at 100 entries a statement. Too much for a question that support asks now and then.
 */
const STRETCH = 5_000

/** Where the journal of a wallet stands. */
export interface WalletHead {
  readonly epoch: number
  readonly seq: number
  readonly head: string
}

export interface FoundHold {
  readonly wallet: WalletHead & { readonly currency: string }
  /** Null: the wallet never had such a hold. */
  readonly made: MadeHold | null
}

export interface MadeHold {
  readonly id: string
  readonly seq: number
  readonly at: number
  readonly metadata: string
  /** The entry that closed it, where that can be told by its key; 0: it is open, or was closed by others. */
  readonly closedSeq: number
  readonly refunded: number
}

export interface BalanceReading {
  readonly currency: string
  /** Null: there is no such entry. */
  readonly seq: number | null
  readonly lastSeq: number
  readonly at: number
  readonly available: number
  readonly reserved: number
  readonly head: string
  readonly complete: boolean
}

interface HeadRow {
  epoch: string
  wallet_seq: string
  head: string
}

interface LastRow {
  seq: string
  at: string
  kind: EntryKind
  hold_amount: string
  hold_captured: string
  hold_left: string
  hold_expires_at: string
  hold_refunded: string | null
}

/** What users read of the journal, and the engine never does. Nothing here changes anything but the tokens of locks. */
export class JournalReader {
  readonly #postgres: Postgres
  readonly #stretch: number

  constructor(postgres: Postgres, stretch = STRETCH) {
    this.#postgres = postgres
    this.#stretch = stretch
  }

  /** Wallets of a tenant by the bytes of their ids: those after `after` that begin with `prefix`. */
  async wallets(tenant: string, prefix: string, after: string, most: number): Promise<WalletRow[]> {
    return (await this.#postgres.query<WalletTableRow>('listWallets', [tenant, after, prefix, most])).map(readWalletRow)
  }

  /** Open holds in the order they were made in, those made after `after`. Null: there is no such wallet. */
  async openHolds(
    ref: string,
    after: number,
    most: number,
  ): Promise<{ wallet: WalletHead; holds: HoldReading[] } | null> {
    const rows = await this.#postgres.query<
      HeadRow & HoldRow & { made_seq: string | null; made_at: string; metadata: string | null }
    >('readOpenHolds', [ref, after, most])
    const [first] = rows
    if (!first) return null
    const holds = rows
      .filter((row) => row.made_seq !== null)
      .map((row) => ({
        id: row.hold,
        seq: Number(row.made_seq),
        madeAt: Number(row.made_at),
        metadata: row.metadata ?? '',
        status: 'open' as const,
        closedAt: 0,
        ...readHold(row),
      }))
    return { wallet: readHead(first), holds }
  }

  /** Null: there is no such wallet. */
  async findHold(ref: string, id: string): Promise<FoundHold | null> {
    const [row] = await this.#postgres.query<
      HeadRow & {
        currency: string
        made_seq: string | null
        made_at: string
        metadata: string | null
        closed_seq: string | null
        refunded: string
      }
    >('findHold', [ref, id])
    if (!row) return null
    const wallet = { ...readHead(row), currency: row.currency }
    if (row.made_seq === null) return { wallet, made: null }
    const made = {
      id,
      seq: Number(row.made_seq),
      at: Number(row.made_at),
      metadata: row.metadata ?? '',
      closedSeq: Number(row.closed_seq ?? 0),
      refunded: Number(row.refunded),
    }
    return { wallet, made }
  }

  /**
   * How a hold stands. Most are closed soon after they were made, or were made a moment ago: one stretch tells. An old one that is open is
   * known by the checkpoint of its wallet; one that was closed late is looked for, stretch by stretch.
   */
  async readHold(
    ref: string,
    { wallet, made }: FoundHold & { made: MadeHold },
    stop: AbortSignal,
  ): Promise<HoldReading> {
    if (made.closedSeq > 0) return readingOf(made, await this.#last(ref, made.id, made.closedSeq, made.closedSeq + 1))
    const next = made.seq + this.#stretch
    const soon = await this.#last(ref, made.id, made.seq, next)
    if ((soon && statusAfterEntry(soon.kind) !== 'open') || wallet.seq < next) return readingOf(made, soon)

    const [open] = await this.#postgres.query<{ wallet_seq: string } & (HoldRow | { hold: null })>('readOpenHold', [
      ref,
      made.id,
    ])
    if (open && open.hold !== null) {
      const { id, seq, at, metadata } = made
      return { id, seq, madeAt: at, metadata, status: 'open', closedAt: 0, ...readHold(open) }
    }
    const end = Number(open?.wallet_seq ?? 0)
    for (let from = next; from <= end; from += this.#stretch) {
      stop.throwIfAborted()
      const last = await this.#last(ref, made.id, from, from + this.#stretch)
      if (last && statusAfterEntry(last.kind) !== 'open') return readingOf(made, last)
    }
    throw new Error('A hold that is not open has an entry that closed it')
  }

  async #last(ref: string, id: string, from: number, to: number): Promise<LastRow | undefined> {
    const [row] = await this.#postgres.query<LastRow>('lastOfHold', [ref, id, from, to])
    return row
  }

  /** All entries about a hold, in order and in parts: as long as it lived, then the refunds that came later. */
  async *entriesOf(
    ref: string,
    { wallet, made }: FoundHold & { made: MadeHold },
    stop: AbortSignal,
  ): AsyncGenerator<Entry[]> {
    const end = made.closedSeq > 0 ? made.closedSeq : wallet.seq
    let from = made.seq
    let closed = false
    while (!closed && from <= end) {
      stop.throwIfAborted()
      const to = from + this.#stretch
      const rows = await this.#postgres.query<EntryRow & { prev_hex: string }>('readHoldEntries', [
        ref,
        made.id,
        from,
        to,
      ])
      closed = rows.some(({ kind }) => statusAfterEntry(kind) !== 'open')
      from = to
      yield rows.map((row) => readEntry(row, row.prev_hex))
    }
    if (!closed) return
    const rows = await this.#postgres.query<EntryRow & { prev_hex: string }>('readHoldRefunds', [ref, made.id, from])
    yield rows.map((row) => readEntry(row, row.prev_hex))
  }

  /** The balance after an entry, or after the last one made by a time. Null: there is no such wallet. */
  async balanceAt(ref: string, when: { seq: number } | { timeMs: number }): Promise<BalanceReading | null> {
    const [row] = await ('seq' in when
      ? this.#postgres.query<BalanceRow>('balanceAtSeq', [ref, when.seq])
      : this.#postgres.query<BalanceRow>('balanceAtTime', [ref, when.timeMs]))
    if (!row) return null
    return {
      currency: row.currency,
      seq: row.seq === null ? null : Number(row.seq),
      lastSeq: Number(row.last_seq),
      at: Number(row.at),
      available: Number(row.available),
      reserved: Number(row.reserved),
      head: row.head,
      complete: row.complete,
    }
  }

  /** Larger than every token before it, whatever Redis has forgotten. */
  async nextLockToken(): Promise<number> {
    const [row] = await this.#postgres.query<{ token: string }>('nextLockToken', [])
    return Number(row?.token)
  }
}

interface BalanceRow {
  currency: string
  seq: string | null
  last_seq: string
  at: string
  available: string
  reserved: string
  head: string
  complete: boolean
}

function readHead({ epoch, wallet_seq, head }: HeadRow): WalletHead {
  return { epoch: Number(epoch), seq: Number(wallet_seq), head }
}

function readingOf({ id, seq, at, metadata, refunded }: MadeHold, last: LastRow | undefined): HoldReading {
  // Its own entry is in the first stretch.
  if (!last) throw new Error('A hold that was made has an entry')
  const status = statusAfterEntry(last.kind)
  return {
    id,
    seq,
    madeAt: at,
    metadata,
    status,
    closedAt: status === 'open' ? 0 : Number(last.at),
    amount: Number(last.hold_amount),
    captured: Number(last.hold_captured),
    left: Number(last.hold_left),
    expiresAt: Number(last.hold_expires_at),
    refunded: Math.max(refunded, Number(last.hold_refunded ?? 0)),
  }
}
