import type { Entry, Stock } from '../machine/index.js'
import type { Postgres } from '../postgres/index.js'
import { Appending } from './appending.js'
import { textArray } from './array-text.js'
import { confirm } from './confirming.js'
import { type EpochStep, epochStep } from './epochs.js'
import { Owning } from './owning.js'
import { type EntryRow, readEntry, readWalletRow, type WalletTableRow } from './rows.js'
import { type Ask, prove, stop } from './standing.js'
import { Stocks } from './stock.js'
import { isStorableEntry } from './storable.js'
import type {
  Charge,
  Confirmation,
  DuePlace,
  DueWallet,
  Filed,
  Journal,
  OpenRequest,
  Raise,
  Refusal,
  Snapshot,
  Standing,
  TakenOver,
  TakeOver,
  Verdict,
  WalletRow,
  Witness,
} from './types.js'

/** Longer than any statement may take. */
const QUIESCE_MS = 20_000

/** What nothing is due at has a `due` of 0, so this stands before all that is. */
const BEFORE_ALL: DuePlace = { due: 0, ref: '0'.repeat(32) }

/** The journal in Postgres. */
export class PostgresJournal implements Journal {
  readonly #postgres: Postgres
  readonly #ask: Ask
  readonly #appending: Appending
  readonly #owning: Owning
  readonly #step: EpochStep
  readonly #stocks: Stocks

  constructor(postgres: Postgres, step: EpochStep = epochStep) {
    this.#postgres = postgres
    this.#step = step
    this.#ask = (name, values) => postgres.query(name, values)
    this.#appending = new Appending(postgres)
    this.#owning = new Owning(postgres, step)
    this.#stocks = new Stocks(this.#ask)
  }

  append(filed: readonly Filed[]): Promise<{ verdicts: Verdict[]; clock: number }> {
    return this.#appending.append(filed)
  }

  canKeep(entry: Entry): boolean {
    return isStorableEntry(entry)
  }

  confirm(refusals: readonly Refusal[]): Promise<(Confirmation | 'locked')[]> {
    return confirm(this.#postgres, refusals)
  }

  raise(raises: readonly Raise[]): Promise<(Snapshot | 'locked' | null)[]> {
    return this.#owning.raise(raises)
  }

  takeOver(ref: string, asked: TakeOver = {}): Promise<TakenOver> {
    return this.#owning.takeOver(ref, asked)
  }

  checkpoint(ref: string): Promise<void> {
    return this.#owning.checkpoint(ref)
  }

  async stock(ref: string, seq: number): Promise<Stock> {
    return this.#stocks.at(ref, seq)
  }

  async prove(witnesses: readonly Witness[]): Promise<Standing> {
    return prove(this.#ask, witnesses)
  }

  async proveWrites(): Promise<boolean> {
    const [row] = await this.#postgres.query<{ written: boolean }>('proveWrites', [])
    return row?.written ?? false
  }

  async stop(epoch: number, because: string): Promise<void> {
    await stop(this.#ask, epoch, because)
  }

  /** Who writes has the table for writing before it looks for a stop: this waits for all of them. Who comes after them sees the stop. */
  async quiesce(): Promise<void> {
    await this.#postgres.transaction(
      async (tx) => {
        await tx.execute('quiesce', `SET LOCAL lock_timeout = ${QUIESCE_MS}; LOCK TABLE wallets IN SHARE MODE`)
      },
      { answerTimeoutMs: 2 * QUIESCE_MS },
    )
  }

  async lift(epoch: number, stoppedAt: number): Promise<number | null> {
    return this.#postgres.transaction(
      async (tx) => {
        // It looks at every wallet.
        await tx.execute('lift_patiently', 'SET LOCAL statement_timeout = 0')
        const [row] = await tx.query<{ floor: string }>('liftStop', [epoch, stoppedAt])
        return row ? Number(row.floor) : null
      },
      { answerTimeoutMs: 0 },
    )
  }

  async find(wanted: readonly { ref: string; key: string }[]): Promise<(Entry | null)[]> {
    const rows = await this.#postgres.query<EntryRow & { n: number; prev_hex: string }>('findKeys', [
      textArray(wanted.map(({ ref }) => ref)),
      textArray(wanted.map(({ key }) => key)),
    ])
    const found: (Entry | null)[] = wanted.map(() => null)
    for (const row of rows) found[row.n - 1] = readEntry(row, row.prev_hex)
    return found
  }

  async holdEntry(ref: string, hold: string): Promise<Entry | null> {
    const [row] = await this.#postgres.query<EntryRow & { prev_hex: string }>('holdEntry', [ref, hold])
    return row ? readEntry(row, row.prev_hex) : null
  }

  async charge(ref: string, seq: number): Promise<Charge | null> {
    const [row] = await this.#postgres.query<{
      epoch: string
      seq: string
      kind: string | null
      hold: string | null
      charge: string
      refunded: string
      hold_closed: boolean | null
      hold_charged: string | null
      hold_refunded: string | null
    }>('refundFacts', [ref, seq])
    if (!row?.kind || !['debit', 'capture', 'tick', 'settle'].includes(row.kind)) return null
    return {
      charge: Number(row.charge),
      hold: row.hold ?? '',
      facts: {
        epoch: Number(row.epoch),
        seq: Number(row.seq),
        refunded: Number(row.refunded),
        holdClosed: row.hold_closed ?? false,
        hold: { charged: Number(row.hold_charged ?? 0), refunded: Number(row.hold_refunded ?? 0) },
      },
    }
  }

  async due(until: number, most: number, after: DuePlace | null): Promise<DueWallet[]> {
    const { due, ref } = after ?? BEFORE_ALL
    const rows = await this.#postgres.query<{ ref: string; tenant: string; due: string; epoch: string }>('dueWallets', [
      until,
      most,
      due,
      ref,
    ])
    return rows.map((row) => ({ ...row, due: Number(row.due), epoch: Number(row.epoch) }))
  }

  async relax(ref: string, epoch: number, seq: number, due: number): Promise<void> {
    await this.#postgres.query('relaxDue', [ref, epoch, seq, due])
  }

  async open(request: OpenRequest): Promise<boolean> {
    const { ref, tenant, id, currency, metadata, creditLimit, head } = request
    const [row] = await this.#postgres.query<{ made: boolean }>('openWallet', [
      ref,
      tenant,
      id,
      currency,
      metadata === '' ? null : metadata,
      creditLimit,
      Buffer.from(head, 'hex'),
      this.#step(),
    ])
    return row?.made ?? false
  }

  async read(refs: readonly string[]): Promise<WalletRow[]> {
    return (await this.#postgres.query<WalletTableRow>('readWallets', [`{${refs}}`])).map(readWalletRow)
  }

  async entries(ref: string, seq: number, most: number): Promise<Entry[]> {
    const rows = await this.#postgres.query<EntryRow & { prev_hex: string }>('readEntries', [ref, seq, most])
    return rows.map((row) => readEntry(row, row.prev_hex))
  }
}
