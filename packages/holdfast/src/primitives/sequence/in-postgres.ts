import { type Postgres, PostgresError, readSettings } from '../../postgres/index.js'
import { type Context, durable, tell } from '../context.js'
import { checkSecret, KeySpace } from '../keys.js'
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
  readonly #operation: string
  /** For checks before any I/O; its hashes are not those of the table. */
  readonly #checks: KeySpace
  #space: Promise<KeySpace> | undefined

  constructor(context: Context, operation: string, kind: 'strict' | 'gapless') {
    this.postgres = durable(context, `a ${kind} sequence`)
    this.#kind = kind
    this.#context = context
    this.#operation = operation
    this.#checks = new KeySpace(context, 'sequence-lasting', operation)
  }

  async name(of: Of): Promise<RowName> {
    this.#checks.scope(of)
    this.#space ??= this.#readSpace()
    const space = await this.#space
    return [this.#context.owner, this.#context.tenant, this.#operation, space.hash(of)]
  }

  /** With the secret that lies beside the table: an application may bring another, and may change it. */
  async #readSpace(): Promise<KeySpace> {
    try {
      const { secret } = await readSettings(this.postgres)
      return new KeySpace({ ...this.#context, secret: checkSecret(secret) }, 'sequence-lasting', this.#operation)
    } catch (error) {
      this.#space = undefined
      throw error
    }
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
