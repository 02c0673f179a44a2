import { createHash } from 'node:crypto'
import type { Postgres } from '../postgres/index.js'
import { textArray } from './array-text.js'
import { type Intents, type Numbers, numbersIn, type Open, type Written } from './intents.js'

/** A purchase that is paid out of a wallet, as it is meant: all that is needed to finish it, or to call it off. */
export interface PaymentIntent {
  readonly tenant: string
  /** The wallet's ref, and that of the bucket of the sale. */
  readonly wallet: string
  readonly bucket: string
  readonly code: string
  /** 32 hex characters: what is held under it belongs to this payment alone. Where one like it was begun before, that one's counts. */
  readonly id: string
  /** What is held: the price of all that is in the checkout. */
  readonly amount: number
  /** All or nothing, or what is left; the limit of a user; and what one of each item costs, `<item>:<price> …`. */
  readonly take: 'all' | 'left'
  readonly perBuyer: number
  readonly prices: string
  /** The account that gets the money. */
  readonly counter: string
  /** JSON text; empty for none. */
  readonly metadata: string
}

/** Null: there is no such wallet, and nothing was written. */
export interface BegunPayment extends Written {
  readonly id: string
  readonly currency: string | null
}

export type PaymentIntents = Intents<PaymentIntent, BegunPayment>

/** All that decides. The same asked for again is the same payment, while it is under way. */
export function paymentName({ wallet, code, amount, take, perBuyer, prices }: PaymentIntent): string {
  const words = JSON.stringify([wallet, code, amount, take, perBuyer, prices])
  return createHash('sha256').update(words).digest('hex').slice(0, 32)
}

interface PaymentRow extends Omit<PaymentIntent, 'amount' | 'perBuyer'> {
  amount: string
  perBuyer: string
  attempt: string
}

export class PostgresPayments implements PaymentIntents {
  readonly #postgres: Postgres

  constructor(postgres: Postgres) {
    this.#postgres = postgres
  }

  async begin(intents: readonly PaymentIntent[]): Promise<BegunPayment[]> {
    const texts = (of: (intent: PaymentIntent) => string) => textArray(intents.map(of))
    const rows = await this.#postgres.query<{
      currency: string | null
      id: string | null
      attempt: string | null
      fresh: boolean | null
    }>('beginPayments', [
      texts(paymentName),
      texts(({ id }) => id),
      texts(({ tenant }) => tenant),
      texts(({ wallet }) => wallet),
      texts(({ bucket }) => bucket),
      texts(({ code }) => code),
      `{${intents.map(({ amount }) => amount)}}`,
      texts(({ take }) => take),
      `{${intents.map(({ perBuyer }) => perBuyer)}}`,
      texts(({ prices }) => prices),
      texts(({ counter }) => counter),
      texts(({ metadata }) => metadata),
    ])
    return rows.map(({ currency, id, attempt, fresh }) => ({
      currency,
      id: id ?? '',
      attempt: Number(attempt ?? 0),
      fresh: fresh ?? false,
    }))
  }

  async numbers(): Promise<Numbers | null> {
    return numbersIn(await this.#postgres.query('paymentNumbers', []))
  }

  async claim(upTo: number, most: number, except: readonly number[] = []): Promise<Open<PaymentIntent>[]> {
    const rows = await this.#postgres.query<PaymentRow>('claimPayments', [upTo, most, `{${except}}`])
    return rows.map(({ amount, perBuyer, attempt, ...rest }) => ({
      ...rest,
      amount: Number(amount),
      perBuyer: Number(perBuyer),
      attempt: Number(attempt),
    }))
  }

  async end(ended: readonly Open<PaymentIntent>[]): Promise<void> {
    const ids = textArray(ended.map(({ id }) => id))
    await this.#postgres.query('endPayments', [ids, `{${ended.map(({ attempt }) => attempt)}}`])
  }
}
