/** Keys that Postgres keeps, and an effect to have once: a row of a table of the caller's own, written in the caller's own transactions. */
import pg from 'pg'
import { expect } from 'vitest'
import { freshDatabase } from '../../../../../test/servers.js'
import { Idempotency, type IdempotencyOptions } from '../../../src/primitives/index.js'
import type { Given, On } from './topologies.js'

export class DurableOrders {
  operation = ''
  #orders: Idempotency<string> | undefined

  private constructor(
    readonly on: On,
    readonly database: string,
    readonly pool: pg.Pool,
  ) {}

  static async open(open: (given: Given) => Promise<On>, given: Given = {}): Promise<DurableOrders> {
    const database = await freshDatabase()
    const pool = new pg.Pool({ connectionString: database, max: 4 })
    await pool.query('CREATE TABLE effects (id text)')
    return new DurableOrders(await open({ postgres: database, ...given }), database, pool)
  }

  /** Each test has keys of its own. */
  begin(options: IdempotencyOptions = {}, { primitives }: Pick<On, 'primitives'> = this.on): Idempotency<string> {
    this.operation = this.on.operation()
    this.#orders = new Idempotency<string>(primitives, this.operation, { durable: true, ...options })
    return this.#orders
  }

  /** As after a flush, or a failover to a replica that had nothing. */
  async forget(): Promise<void> {
    for (const key of await this.on.keys(this.operation)) await this.on.redis.del(key)
  }

  async endLeases(): Promise<void> {
    const end = 'UPDATE holdfast.idempotency_keys SET lease_until = 1 WHERE operation = $1 AND lease_until > 0'
    await this.pool.query(end, [this.operation])
  }

  async effects(): Promise<number> {
    const { rows } = await this.pool.query('SELECT 1 FROM effects WHERE id = $1', [this.operation])
    return rows.length
  }

  /** The beginning of a transaction that has the effect. */
  async beginEffect(how = ''): Promise<pg.PoolClient> {
    const client = await this.pool.connect()
    await client.query(`BEGIN ${how}`)
    await client.query('INSERT INTO effects VALUES ($1)', [this.operation])
    return client
  }

  /** A transaction that has the effect and completes `key`; `end` says how it ends. */
  async transact(token: string, response: string, end: 'COMMIT' | 'ROLLBACK' = 'COMMIT'): Promise<void> {
    const client = await this.beginEffect()
    try {
      await this.#orders?.completeIn(client, 'key', token, response)
      await client.query(end)
    } catch (error) {
      // Whatever a caller does now: it can't commit.
      expect((await client.query('COMMIT')).command).toBe('ROLLBACK')
      throw error
    } finally {
      client.release()
    }
  }

  async close(): Promise<void> {
    await this.pool.end()
    await this.on.close()
  }
}
