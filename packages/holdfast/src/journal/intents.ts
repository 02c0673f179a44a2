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

/** Of whichever kind, as it lies there. */
export type Open<I> = I & {
  /** Another number each time somebody sets to work on it. */
  readonly attempt: number
}

export type OpenIntent = Open<Intent>

export interface Written {
  /** 0: nothing was written. */
  readonly attempt: number
  /** Nobody had begun it before, nor at the same time. */
  readonly fresh: boolean
}

/** Each is higher than all that were given before. */
export interface Numbers {
  readonly oldest: number
  readonly newest: number
}

/** Null for a wallet that does not exist. Nothing is written unless both exist and have one currency. */
export interface Begun extends Written {
  readonly sourceCurrency: string | null
  readonly targetCurrency: string | null
}

/**
 * What moves two aggregates, was begun and may not be finished: transfers, and purchases out of wallets. Written down before anything else
 * happens, so that whoever lives can finish what others began. Every call is one statement, safe to repeat.
 */
export interface Intents<I = Intent, B extends Written = Begun> {
  /** Written down before, it only gets another number. One answer for each, in order. */
  begin(intents: readonly I[]): Promise<B[]>
  /** Of those that are open; null: none are. */
  numbers(): Promise<Numbers | null>
  /**
   * Sets to work on those that nobody did for longest, with numbers up to this one: each has another then, and nobody else gets it. Without
   * `except`: on these it is at work.
   */
  claim(upTo: number, most: number, except?: readonly number[]): Promise<Open<I>[]>
  /** Finished or undone: not open any more. With an attempt: unless somebody set to work on it since; 0: in any case. */
  end(ended: readonly Open<I>[]): Promise<void>
}

/** Transfers; and what is on its way between buckets of a sale, which stands in the same place. */
export interface TransferIntents extends Intents {
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

export class PostgresIntents implements TransferIntents {
  readonly #postgres: Postgres

  constructor(postgres: Postgres) {
    this.#postgres = postgres
  }

  async begin(intents: readonly Intent[]): Promise<Begun[]> {
    const rows = await this.#postgres.query<{
      source_currency: string | null
      target_currency: string | null
      attempt: string | null
      fresh: boolean | null
    }>('beginTransfers', [
      ...identity(intents),
      textArray(intents.map(({ tenant }) => tenant)),
      textArray(intents.map(({ counter }) => counter)),
      textArray(intents.map(({ metadata }) => metadata)),
    ])
    return rows.map((row) => ({
      attempt: Number(row.attempt ?? 0),
      fresh: row.fresh ?? false,
      sourceCurrency: row.source_currency,
      targetCurrency: row.target_currency,
    }))
  }

  async numbers(): Promise<Numbers | null> {
    return numbersIn(await this.#postgres.query('transferNumbers', []))
  }

  async claim(upTo: number, most: number, except: readonly number[] = []): Promise<OpenIntent[]> {
    return (await this.#postgres.query<IntentRow>('claimTransfers', [upTo, most, `{${except}}`])).map(openOf)
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

export function numbersIn([row]: { oldest: string | null; newest: string | null }[]): Numbers | null {
  return row?.oldest ? { oldest: Number(row.oldest), newest: Number(row.newest) } : null
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
