import { type Postgres, PostgresError } from '../../postgres/index.js'
import { type Context, durable, ofDatabase, tell } from '../context.js'
import { KeySpace } from '../keys.js'
import { overflow } from './fast-sequence.js'

const OVERFLOW = 'sequences_are_exact'

type Of = string | readonly string[]

/** What stands for a sequence in the table: owner, tenant, operation and scope. */
export type RowName = readonly [owner: string, tenant: string, operation: string, scope: string]

/** Which row a sequence has. */
export class Rows {
  readonly postgres: Postgres
  readonly #context: Context
  readonly #kind: 'strict' | 'gapless'
  readonly #space: KeySpace

  constructor(context: Context, operation: string, kind: 'strict' | 'gapless') {
    this.postgres = durable(context, `a ${kind} sequence`)
    this.#kind = kind
    this.#context = context
    // With the secret that lies beside the table: an application may bring another, and may change it.
    this.#space = new KeySpace(ofDatabase(context, `a ${kind} sequence`), 'sequence-lasting', operation)
  }

  name(of: Of): RowName {
    const { owner, tenant } = this.#context
    return [owner, tenant, this.#space.operation, this.#space.hash(of)]
  }

  /** What is told of a call that failed. */
  failed(error: unknown, by: number): unknown {
    const isOver = error instanceof PostgresError && error.constraint === OVERFLOW
    this.tell(isOver ? 'overflow' : 'unavailable')
    return isOver ? overflow(by) : error
  }

  tell(result: string): void {
    tell(this.#context, 'sequence-lasting', `${this.#kind}_${result}`)
  }
}
