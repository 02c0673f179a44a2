import { integer, invalid, show } from '../../input/index.js'
import { type CallersClient, callWithin, PostgresError } from '../../postgres/index.js'
import type { Primitives } from '../primitives.js'
import { MANY_MAX, type NumberRange } from './fast-sequence.js'
import { Rows } from './in-postgres.js'

type Of = string | readonly string[]

const TAKE = { table: 'sequences', name: 'take_numbers' }
const NO_TRANSACTION = '25P01'

/**
 * Numbers without gaps, for what the law numbers: each is taken within the caller's own transaction, which also writes what bears it. When
 * that commits both are there, and when it does not neither is, and the next one gets the number. Until then others wait.
 */
export class GaplessSequence {
  readonly #rows: Rows

  constructor({ context }: Primitives, operation: string) {
    this.#rows = new Rows(context, operation, 'gapless')
  }

  /** `client` is one of `pg` within a transaction, on the database of these primitives. */
  async next(client: CallersClient, of: Of): Promise<number> {
    return (await this.nextMany(client, of, 1)).last
  }

  /** So many in a row. As `next`: within your own transaction. */
  async nextMany(client: CallersClient, of: Of, count: number): Promise<NumberRange> {
    integer('count', count, 1, MANY_MAX)
    if (typeof client !== 'object' || client === null || typeof client.query !== 'function') {
      throw invalid('client', 'a client of pg within a transaction', show(client))
    }
    const row = this.#rows.name(of)
    const last = Number(await this.#take(client, [...row, true, count], count))
    this.#rows.tell('given')
    return { first: last - count + 1, last }
  }

  async #take(client: CallersClient, values: readonly unknown[], count: number): Promise<string> {
    try {
      return await callWithin(client, { schema: this.#rows.postgres.schema, ...TAKE }, values)
    } catch (error) {
      const isOutside = error instanceof PostgresError && error.sqlstate === NO_TRANSACTION
      throw isOutside
        ? invalid('client', 'one within a transaction', 'one outside of any')
        : this.#rows.failed(error, count)
    }
  }
}
