import type pg from 'pg'
import { HoldfastError } from '../errors/index.js'
import { PostgresError } from './failure.js'
import { Lease } from './lease.js'
import { checkMs } from './session.js'
import { addressOf, isPool, takeClient } from './source.js'

export interface StatementsOptions {
  /** How long a call waits for a connection, new or free. Default 5 s. */
  readonly connectTimeoutMs?: number
  /** How long a call waits for the server's answer. Default 15 s. */
  readonly answerTimeoutMs?: number
  /** Prepare each statement once a connection. Default true. */
  readonly prepared?: boolean
}

export interface Statement {
  readonly name: string
  readonly text: string
  /** Without any the text may be several statements, which are one transaction. */
  readonly values?: readonly unknown[]
  /** 0 waits for ever: for what may have to wait for others. */
  readonly answerTimeoutMs?: number
}

const CONNECT_TIMEOUT_MS = 5_000
const ANSWER_TIMEOUT_MS = 15_000
/** Deadlocks and failures to serialize, where the application has asked for an isolation in which they happen: each time a little later. */
const TRIES_MAX = 12
const RETRY_MS = 2

/**
 * Single statements on a pool that the application made, under whatever settings its connections have: each is a transaction of its own,
 * and one round trip. What Holdfast's own tables need settings for goes through `Postgres` instead.
 */
export class Statements {
  readonly address: string
  readonly #pool: pg.Pool
  readonly #connectTimeoutMs: number
  readonly #answerTimeoutMs: number
  readonly #prepared: boolean

  /** No I/O: the first call connects. */
  constructor(pool: pg.Pool, options: StatementsOptions = {}) {
    if (!isPool(pool)) {
      throw new HoldfastError('invalid_argument', 'pool: expected a pool of pg, got something else', {
        argument: 'pool',
      })
    }
    this.#pool = pool
    this.address = addressOf(pool.options)
    this.#connectTimeoutMs = checkMs('connectTimeoutMs', options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS)
    this.#answerTimeoutMs = checkMs('answerTimeoutMs', options.answerTimeoutMs ?? ANSWER_TIMEOUT_MS)
    this.#prepared = options.prepared ?? true
  }

  /** What the server refused because of others who were at it is sent again; what it did not answer is not: see `outcome` of the error. */
  async run<Row extends pg.QueryResultRow>(statement: Statement): Promise<Row[]> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#send<Row>(statement)
      } catch (error) {
        if (!(error instanceof PostgresError) || error.outcome !== 'retry' || tries === TRIES_MAX) throw error
        await new Promise((resolve) => setTimeout(resolve, Math.random() * RETRY_MS * 2 ** tries))
      }
    }
  }

  async #send<Row extends pg.QueryResultRow>(statement: Statement): Promise<Row[]> {
    const lease = new Lease(await takeClient(this.#pool, this.address, this.#connectTimeoutMs), this.address, undefined)
    try {
      const { answerTimeoutMs = this.#answerTimeoutMs } = statement
      const { name, text, values } = statement
      const sent = {
        name,
        text,
        prepared: this.#prepared,
        ifLost: 'unknown',
        answerTimeoutMs,
      } as const
      return (await lease.send<Row>({ ...sent, ...(values && { values }) })).rows
    } finally {
      lease.release()
    }
  }
}
