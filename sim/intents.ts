import {
  type Begun,
  type BegunPayment,
  type Intent,
  type Intents,
  type Moving,
  type Numbers,
  type Open,
  type PaymentIntent,
  paymentName,
  type TransferIntents,
  type Written,
} from '../packages/holdfast/src/journal/index.js'
import type { SimDatabase } from './database.js'
import { AT_ONCE, type Statement } from './journal.js'

/** What is under way and moves two aggregates, over a database that is simulated, as one process has it. */
class SimIntentsOf<I extends object, B extends Written> implements Intents<I, B> {
  readonly #what: string
  readonly #table: IntentTable<I, B>
  readonly #statement: Statement

  constructor(what: string, table: IntentTable<I, B>, statement: Statement) {
    this.#what = what
    this.#table = table
    this.#statement = statement
  }

  begin(intents: readonly I[]): Promise<B[]> {
    return this.#statement(`begin${this.#what}s`, true, () => this.#table.begin(intents))
  }

  numbers(): Promise<Numbers | null> {
    return this.#statement(`${this.#what.toLowerCase()}Numbers`, false, () => this.#table.numbers())
  }

  claim(upTo: number, most: number, except: readonly number[] = []): Promise<Open<I>[]> {
    return this.#statement(`claim${this.#what}s`, true, () => this.#table.claim(upTo, most, except))
  }

  end(ended: readonly Open<I>[]): Promise<void> {
    return this.#statement(`end${this.#what}s`, true, () => this.#table.end(ended))
  }
}

export class SimIntents extends SimIntentsOf<Intent, Begun> implements TransferIntents {
  readonly #database: SimDatabase
  readonly #asked: Statement

  constructor(database: SimDatabase, statement: Statement = AT_ONCE) {
    super('Transfer', database.intents, statement)
    this.#database = database
    this.#asked = statement
  }

  moving(buckets: readonly { readonly ref: string; readonly seq: number }[]): Promise<Moving> {
    return this.#asked('movingStock', false, () => {
      const refs = new Set(buckets.map(({ ref }) => ref))
      const open = this.#database.intents.open.filter(({ source }) => refs.has(source))
      const since = new Map(buckets.map(({ ref, seq }) => [ref, seq]))
      const arrived = [...this.#database.wallets()].some(({ row, entries }) =>
        entries.some(({ seq, params }) => seq > (since.get(row.ref) ?? Infinity) && params.startsWith('take ')),
      )
      return { arrived, open }
    })
  }
}

export class SimPayments extends SimIntentsOf<PaymentIntent, BegunPayment> {
  constructor({ payments }: SimDatabase, statement: Statement = AT_ONCE) {
    super('Payment', payments, statement)
  }
}

/** What the rows of a table are known by, and what is told of one that was asked for. */
interface Rules<I, B extends Written> {
  nameOf(intent: I): string
  /** May it be written down? */
  accepts(intent: I): boolean
  /** `row` null: nothing was written. */
  told(asked: I, row: I | null, written: Written): B
}

/** A table of them: every method is one statement and one atomic step. */
export class IntentTable<I extends object, B extends Written> {
  readonly #rules: Rules<I, B>
  readonly #rows = new Map<string, Open<I>>()
  #attempts = 0

  constructor(rules: Rules<I, B>) {
    this.#rules = rules
  }

  get size(): number {
    return this.#rows.size
  }

  /** In the order of their numbers. */
  get open(): Open<I>[] {
    return [...this.#rows.values()].sort((a, b) => a.attempt - b.attempt)
  }

  begin(intents: readonly I[]): B[] {
    const { nameOf, accepts, told } = this.#rules
    const names = intents.map(nameOf)
    const before = new Set(this.#rows.keys())
    const made = new Map<string, number>()
    return intents.map((intent, index) => {
      if (!accepts(intent)) return told(intent, null, { attempt: 0, fresh: false })
      const name = names[index] as string
      const attempt = made.get(name) ?? this.#number()
      made.set(name, attempt)
      const row = { ...(this.#rows.get(name) ?? intent), attempt }
      this.#rows.set(name, row)
      const alone = names.indexOf(name) === names.lastIndexOf(name)
      return told(intent, row, { attempt, fresh: alone && !before.has(name) })
    })
  }

  numbers(): Numbers | null {
    const { open } = this
    const [oldest, newest] = [open[0], open.at(-1)]
    return oldest && newest ? { oldest: oldest.attempt, newest: newest.attempt } : null
  }

  claim(upTo: number, most: number, except: readonly number[]): Open<I>[] {
    const found = this.open.filter(({ attempt }) => attempt <= upTo && !except.includes(attempt)).slice(0, most)
    return found.map((row) => {
      const claimed = { ...row, attempt: this.#number() }
      this.#rows.set(this.#rules.nameOf(row), claimed)
      return claimed
    })
  }

  end(ended: readonly Open<I>[]): void {
    for (const intent of ended) {
      const name = this.#rules.nameOf(intent)
      const row = this.#rows.get(name)
      if (row && sameId(row, intent) && (intent.attempt === 0 || row.attempt === intent.attempt))
        this.#rows.delete(name)
    }
  }

  /** Plain data; what happens later leaves it alone. */
  snapshot(): readonly Open<I>[] {
    return [...this.#rows.values()]
  }

  restore(rows: readonly Open<I>[]): void {
    this.#rows.clear()
    for (const row of rows) this.#rows.set(this.#rules.nameOf(row), row)
  }

  #number(): number {
    this.#attempts += 1
    return this.#attempts
  }
}

/** What was called off can be begun again, as another. */
const sameId = (row: object, ended: object): boolean => !('id' in row && 'id' in ended) || row.id === ended.id

type CurrencyOf = (ref: string) => string | null

export const transferTable = (currencyOf: CurrencyOf): IntentTable<Intent, Begun> =>
  new IntentTable({
    nameOf: ({ source, key, target, amount, fee }) => JSON.stringify([source, key, target, amount, fee]),
    accepts: ({ source, target }) => currencyOf(source) !== null && currencyOf(source) === currencyOf(target),
    told: ({ source, target }, _, written) => ({
      ...written,
      sourceCurrency: currencyOf(source),
      targetCurrency: currencyOf(target),
    }),
  })

export const paymentTable = (currencyOf: CurrencyOf): IntentTable<PaymentIntent, BegunPayment> =>
  new IntentTable({
    nameOf: paymentName,
    accepts: ({ wallet }) => currencyOf(wallet) !== null,
    told: ({ wallet }, row, written) => ({ ...written, id: row?.id ?? '', currency: currencyOf(wallet) }),
  })
