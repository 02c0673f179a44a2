import type { Postgres } from '../postgres/index.js'
import { textArray } from './array-text.js'

/** A transfer as it is meant: all that is needed to finish it. Wallets by their refs. */
export interface Intent {
  readonly tenant: string
  readonly source: string
  readonly target: string
  readonly key: string
  readonly amount: number
  readonly fee: number
  /** The account that gets the fee. */
  readonly counter: string
  /** JSON text; empty for none. Of a move between buckets of a sale: what moves, in the words of its commands. */
  readonly metadata: string
}

export interface OpenIntent extends Intent {
  /** Another number each time somebody sets to work on it. */
  readonly attempt: number
}

/** Null for a wallet that does not exist. The attempt is 0, and nothing was written, unless both exist and have one currency. */
export interface Begun {
  readonly attempt: number
  readonly sourceCurrency: string | null
  readonly targetCurrency: string | null
}

/**
 * Transfers that were begun and may not be finished. Written down before anything else happens, so that whoever lives can finish what
 * others began. Every call is one statement, safe to repeat.
 */
export interface Intents {
  /** Written down before, it only gets another number. One answer for each, in order. */
  begin(intents: readonly Intent[]): Promise<Begun[]>
  /** Those that nobody set to work on for longest. */
  open(most: number): Promise<OpenIntent[]>
  /** Sets to work on what was seen: the new number, or null when somebody else did since. */
  claim(attempt: number): Promise<number | null>
  /** Finished or undone: not open any more. With an attempt: unless somebody set to work on it since; 0: in any case. */
  end(ended: readonly OpenIntent[]): Promise<void>
  /** What is on its way between buckets, and whether something has come since each was at a seq: both at one time. */
  moving(buckets: readonly { readonly ref: string; readonly seq: number }[]): Promise<Moving>
}

interface IntentRow {
  source: string
  key: string
  target: string
  amount: string
  fee: string
  tenant: string
  counter: string
  metadata: string
  attempt: string
}

/** What is on its way between buckets of a sale. */
export interface Moving {
  /** One of them has taken something after the seq that was named. */
  readonly arrived: boolean
  readonly open: readonly OpenIntent[]
}

export class PostgresIntents implements Intents {
  readonly #postgres: Postgres

  constructor(postgres: Postgres) {
    this.#postgres = postgres
  }

  async begin(intents: readonly Intent[]): Promise<Begun[]> {
    const rows = await this.#postgres.query<{
      source_currency: string | null
      target_currency: string | null
      attempt: string | null
    }>('beginTransfers', [
      ...identity(intents),
      textArray(intents.map(({ tenant }) => tenant)),
      textArray(intents.map(({ counter }) => counter)),
      textArray(intents.map(({ metadata }) => metadata)),
    ])
    return rows.map((row) => ({
      attempt: Number(row.attempt ?? 0),
      sourceCurrency: row.source_currency,
      targetCurrency: row.target_currency,
    }))
  }

  async open(most: number): Promise<OpenIntent[]> {
    return (await this.#postgres.query<IntentRow>('openTransfers', [most])).map(openOf)
  }

  async claim(attempt: number): Promise<number | null> {
    const [row] = await this.#postgres.query<{ attempt: string }>('claimTransfer', [attempt])
    return row ? Number(row.attempt) : null
  }

  async end(ended: readonly OpenIntent[]): Promise<void> {
    await this.#postgres.query('endTransfers', [...identity(ended), `{${ended.map(({ attempt }) => attempt)}}`])
  }

  async moving(buckets: readonly { readonly ref: string; readonly seq: number }[]): Promise<Moving> {
    const rows = await this.#postgres.query<{ arrived: boolean; moves: (IntentRow | null)[] }>('movingStock', [
      textArray(buckets.map(({ ref }) => ref)),
      `{${buckets.map(({ seq }) => seq)}}`,
    ])
    const { arrived, moves } = rows[0] as (typeof rows)[0]
    return { arrived, open: moves.flatMap((row) => (row ? [openOf(row)] : [])) }
  }
}

function openOf({ amount, fee, attempt, ...rest }: IntentRow): OpenIntent {
  return { ...rest, amount: Number(amount), fee: Number(fee), attempt: Number(attempt) }
}

function identity(intents: readonly Intent[]): string[] {
  return [
    textArray(intents.map(({ source }) => source)),
    textArray(intents.map(({ key }) => key)),
    textArray(intents.map(({ target }) => target)),
    `{${intents.map(({ amount }) => amount)}}`,
    `{${intents.map(({ fee }) => fee)}}`,
  ]
}
