import type { Begun, Intent, Intents, Moving, OpenIntent } from '../packages/holdfast/src/journal/index.js'
import type { SimDatabase } from './database.js'
import { AT_ONCE, type Statement } from './journal.js'

/** Transfers under way, over a database that is simulated, as one process has them. */
export class SimIntents implements Intents {
  readonly #database: SimDatabase
  readonly #statement: Statement

  constructor(database: SimDatabase, statement: Statement = AT_ONCE) {
    this.#database = database
    this.#statement = statement
  }

  begin(intents: readonly Intent[]): Promise<Begun[]> {
    return this.#statement('beginTransfers', true, () => this.#database.intents.begin(intents))
  }

  open(most: number): Promise<OpenIntent[]> {
    return this.#statement('openTransfers', false, () => this.#database.intents.open(most))
  }

  claim(attempt: number): Promise<number | null> {
    return this.#statement('claimTransfer', true, () => this.#database.intents.claim(attempt))
  }

  end(ended: readonly OpenIntent[]): Promise<void> {
    return this.#statement('endTransfers', true, () => this.#database.intents.end(ended))
  }

  moving(buckets: readonly Bucket[]): Promise<Moving> {
    return this.#statement('movingStock', false, () => {
      const refs = new Set(buckets.map(({ ref }) => ref))
      const open = this.#database.intents.open(Number.POSITIVE_INFINITY).filter(({ source }) => refs.has(source))
      const since = new Map(buckets.map(({ ref, seq }) => [ref, seq]))
      const arrived = [...this.#database.wallets()].some(({ row, entries }) =>
        entries.some(({ seq, params }) => seq > (since.get(row.ref) ?? Infinity) && params.startsWith('take ')),
      )
      return { arrived, open }
    })
  }
}

type Bucket = { readonly ref: string; readonly seq: number }

/** Their table: every method is one statement and one atomic step. */
export class IntentTable {
  readonly #currencyOf: (ref: string) => string | null
  readonly #rows = new Map<string, OpenIntent>()
  #attempts = 0

  constructor(currencyOf: (ref: string) => string | null) {
    this.#currencyOf = currencyOf
  }

  get size(): number {
    return this.#rows.size
  }

  begin(intents: readonly Intent[]): Begun[] {
    const made = new Map<string, number>()
    return intents.map((intent) => {
      const sourceCurrency = this.#currencyOf(intent.source)
      const targetCurrency = this.#currencyOf(intent.target)
      if (sourceCurrency === null || sourceCurrency !== targetCurrency)
        return { attempt: 0, sourceCurrency, targetCurrency }
      const name = identity(intent)
      const attempt = made.get(name) ?? this.#number()
      made.set(name, attempt)
      this.#rows.set(name, { ...(this.#rows.get(name) ?? intent), attempt })
      return { attempt, sourceCurrency, targetCurrency }
    })
  }

  open(most: number): OpenIntent[] {
    return [...this.#rows.values()].sort((a, b) => a.attempt - b.attempt).slice(0, most)
  }

  claim(attempt: number): number | null {
    for (const [name, row] of this.#rows) {
      if (row.attempt !== attempt) continue
      const claimed = this.#number()
      this.#rows.set(name, { ...row, attempt: claimed })
      return claimed
    }
    return null
  }

  end(ended: readonly OpenIntent[]): void {
    for (const intent of ended) {
      const name = identity(intent)
      if (intent.attempt === 0 || this.#rows.get(name)?.attempt === intent.attempt) this.#rows.delete(name)
    }
  }

  /** Plain data; what happens later leaves it alone. */
  snapshot(): readonly OpenIntent[] {
    return [...this.#rows.values()]
  }

  restore(rows: readonly OpenIntent[]): void {
    this.#rows.clear()
    for (const row of rows) this.#rows.set(identity(row), row)
  }

  #number(): number {
    this.#attempts += 1
    return this.#attempts
  }
}

function identity({ source, key, target, amount, fee }: Intent): string {
  return JSON.stringify([source, key, target, amount, fee])
}
