import { startPostgres, startRedis } from '@holdfast/services'
import { GaplessSequence, Primitives, StrictSequence } from 'holdfast/primitives'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { NumberTakers } from './support/number-takers.js'
import { PATIENT } from './support/patient.js'
import { SECRET } from './support/topologies.js'

const MAX = Number.MAX_SAFE_INTEGER
const isUnique = (numbers: readonly number[]) => new Set(numbers).size === numbers.length
const inOrder = (numbers: readonly number[]) => [...numbers].sort((a, b) => a - b)
const upTo = (last: number) => Array.from({ length: last }, (_, n) => n + 1)

let database: string
let redis: string
let pool: pg.Pool
let opened: Primitives[] = []
let results: Record<string, number> = {}

/** As if of another process: connections of its own, and blocks of its own. */
async function connect(secret = SECRET): Promise<Primitives> {
  const primitives = await Primitives.connect({
    redis,
    postgres: database,
    secret,
    ...PATIENT,
    telemetry: {
      count(metric, { result = '' } = {}) {
        if (metric === 'holdfast_primitive_results_total') results[result] = (results[result] ?? 0) + 1
      },
    },
  })
  opened.push(primitives)
  return primitives
}

beforeEach(async () => {
  database = await freshDatabase()
  redis = await freshRedis()
  pool = new pg.Pool({ connectionString: database, max: 5 })
  results = {}
})
afterEach(async () => {
  await Promise.all(opened.map((primitives) => primitives.close()))
  opened = []
  await pool.end()
})

const rows = async (): Promise<Record<string, string>[]> =>
  (await pool.query('SELECT tenant, operation, scope, gapless, last FROM holdfast.sequences ORDER BY last')).rows

describe('strict sequence', () => {
  it('missing key, existing key: begins with 1, goes on without gaps while nothing goes wrong, each scope by itself', async () => {
    const invoices = new StrictSequence(await connect(), 'invoice', { blockSize: 3 })
    const given: number[] = []
    for (let n = 0; n < 10; n += 1) given.push(await invoices.next('2026'))
    expect(given).toEqual(upTo(10))
    expect(await invoices.next('2027')).toBe(1)
    expect((await rows()).map(({ last }) => last)).toEqual(['3', '12'])
  })

  it('metrics: Postgres is asked once a block', async () => {
    const invoices = new StrictSequence(await connect(), 'invoice', { blockSize: 100 })
    await Promise.all(Array.from({ length: 250 }, () => invoices.next('2026')))
    expect(results).toEqual({ strict_given: 250, strict_reserved: 3 })
  })

  it('gives numbers in a row, from the block where it has enough', async () => {
    const invoices = new StrictSequence(await connect(), 'invoice', { blockSize: 10 })
    expect(await invoices.next('2026')).toBe(1)
    expect(await invoices.nextMany('2026', 5)).toEqual({ first: 2, last: 6 })
    expect(await invoices.nextMany('2026', 20)).toEqual({ first: 11, last: 30 })
    // What was left of the block is not lost.
    expect(await invoices.next('2026')).toBe(7)
    expect(await invoices.nextMany('2026', 3)).toEqual({ first: 8, last: 10 })
    expect(await invoices.next('2026')).toBe(31)
  })

  it('concurrency: several processes at once never give a number twice', async () => {
    const sequences = await Promise.all(
      upTo(4).map(async (n) => new StrictSequence(await connect(), 'invoice', { blockSize: n })),
    )
    const given = await Promise.all(
      Array.from({ length: 400 }, (_, n) => (sequences[n % 4] as StrictSequence).next('2026')),
    )
    const ranges = await Promise.all(sequences.map((sequence) => sequence.nextMany('2026', 7)))
    expect(isUnique([...given, ...ranges.flatMap(({ first }) => upTo(7).map((n) => first + n - 1))])).toBe(true)
  })

  it('redis away: goes on, and has lost nothing when Redis has', async () => {
    const server = await startRedis({ source: 'installed' })
    const primitives = await Primitives.connect({
      redis: server.url,
      postgres: database,
      ...PATIENT,
    })
    opened.push(primitives)
    const invoices = new StrictSequence(primitives, 'invoice', { blockSize: 2 })
    const given = [await invoices.next('2026'), await invoices.next('2026')]
    await server.stop()
    given.push(await invoices.next('2026'), await invoices.next('2026'), await invoices.next('2026'))
    expect(given).toEqual(upTo(5))
  })

  it('keys: hashes whom it is of with the secret of the database, so that another secret is not another sequence', async () => {
    const before = new StrictSequence(await connect(), 'invoice', { blockSize: 1 })
    const after = new StrictSequence(await connect('another secret of the application'), 'invoice', { blockSize: 1 })
    expect(await before.next('customer@example.com')).toBe(1)
    expect(await after.next('customer@example.com')).toBe(2)
    const acme = new StrictSequence((await connect()).forTenant('acme'), 'invoice', { blockSize: 1 })
    expect(await acme.next('customer@example.com')).toBe(1)
    const [first, second] = await rows()
    expect(first).toMatchObject({
      tenant: 'acme',
      operation: 'invoice',
      scope: expect.stringMatching(/^[0-9a-f]{32}$/),
    })
    expect(second?.scope).not.toBe(first?.scope)
    expect(JSON.stringify(await rows())).not.toContain('example')
  })

  it('tells that Postgres is away, and goes on when it is back', async () => {
    const invoices = new StrictSequence(await connect(), 'invoice', { blockSize: 2 })
    await invoices.next('2026')
    await pool.query('ALTER TABLE holdfast.sequences RENAME TO elsewhere')
    expect(await invoices.next('2026')).toBe(2)
    const refused = await Promise.allSettled(upTo(5).map(() => invoices.next('2026')))
    expect(refused.map(({ status }) => status)).toEqual(upTo(5).map(() => 'rejected'))
    await pool.query('ALTER TABLE holdfast.elsewhere RENAME TO sequences')
    expect(await invoices.next('2026')).toBe(3)
  })

  it('gives no number twice when Postgres crashes and comes back', async () => {
    const server = await startPostgres({ durable: false })
    try {
      const primitives = await Primitives.connect({ redis, postgres: server.url, ...PATIENT })
      opened.push(primitives)
      const invoices = new StrictSequence(primitives, 'invoice', { blockSize: 2 })
      const given = [await invoices.next('2026'), await invoices.next('2026'), await invoices.next('2026')]
      await server.kill()
      // What is left of the block, and then nothing.
      given.push(await invoices.next('2026'))
      await expect(invoices.next('2026')).rejects.toMatchObject({ code: 'unavailable', retryable: true })
      await server.restart()
      await expect.poll(() => invoices.next('2026').then((number) => given.push(number)), { timeout: 20_000 }).toBe(5)
      given.push(await new StrictSequence(primitives, 'invoice').next('2026'))
      expect(given.slice(0, 4)).toEqual(upTo(4))
      expect(isUnique(given)).toBe(true)
    } finally {
      await Promise.all(opened.splice(0).map((primitives) => primitives.close()))
      await server.stop()
    }
  }, 120_000)

  it('takes no number beyond 2^53 − 1', async () => {
    const invoices = new StrictSequence(await connect(), 'invoice', { blockSize: 2 })
    expect(await invoices.raise('2026', MAX - 2)).toBe(MAX - 2)
    expect(await invoices.next('2026')).toBe(MAX - 1)
    expect(await invoices.next('2026')).toBe(MAX)
    await expect(invoices.next('2026')).rejects.toMatchObject({ code: 'counter_overflow' })
    expect(results.strict_overflow).toBe(1)
  })

  it('goes on after a number that it is told, when Postgres was put back, and gives nothing of its old block', async () => {
    const invoices = new StrictSequence(await connect(), 'invoice', { blockSize: 10 })
    await invoices.next('2026')
    expect(await invoices.raise('2026', 500)).toBe(500)
    expect(await invoices.next('2026')).toBe(501)
    expect(await invoices.raise('2026', 20)).toBe(510)
    expect(await invoices.next('2026')).toBe(511)
    // Also of one that is on its way while it is raised.
    const other = new StrictSequence(await connect(), 'other', { blockSize: 10 })
    const [during] = await Promise.all([other.next('2026'), other.raise('2026', 500)])
    expect([1, 501]).toContain(during)
    expect(await other.next('2026')).toBeGreaterThan(500)
  })

  it('refuses what it can not do before it asks anybody', async () => {
    const primitives = await connect()
    const invoices = new StrictSequence(primitives, 'invoice')
    await expect(invoices.next('')).rejects.toThrow('scope: expected 1 to 1024')
    await expect(invoices.nextMany('a', 0)).rejects.toThrow('count: expected an integer')
    expect(() => new StrictSequence(primitives, 'invoice', { blockSize: 0 })).toThrow('blockSize: expected an integer')
    const without = await Primitives.connect({ redis, secret: SECRET })
    opened.push(without)
    expect(() => new StrictSequence(without, 'invoice')).toThrow(
      'postgres: expected a connection, since a strict sequence',
    )
    expect(await rows()).toEqual([])
  })
})

describe('strict sequence of processes that are killed', () => {
  let takers: NumberTakers
  beforeAll(async () => {
    takers = await NumberTakers.prepare()
  })
  afterAll(() => takers.stop())

  it('concurrency: never gives a number twice, and leaves out no more than their blocks', async () => {
    const blockSize = 7
    const order = { redis, postgres: database, operation: 'invoice', blockSize }
    const kills = [10, 25, 3, 40]
    await Promise.all([
      (async () => {
        for (const numbers of kills) await takers.killAfter(order, numbers)
      })(),
      takers.killAfter(order, 60),
    ])
    const survivor = new StrictSequence(await connect(), 'invoice', { blockSize })
    const after = await Promise.all(upTo(50).map(() => survivor.next('invoices')))
    const given = [...takers.numbers, ...after]
    expect(given.length).toBeGreaterThanOrEqual(188)
    expect(isUnique(given)).toBe(true)
    // Each that was killed had one block at most that it was giving from, and one on its way.
    const last = Math.max(...given)
    expect(last - given.length).toBeLessThanOrEqual((kills.length + 1) * blockSize * 2 + blockSize)
  }, 120_000)
})

describe('gapless sequence', () => {
  let invoices: GaplessSequence
  beforeEach(async () => {
    invoices = new GaplessSequence(await connect(), 'invoice')
    await pool.query('CREATE TABLE invoices (number bigint PRIMARY KEY)')
  })

  async function within<T>(work: (client: pg.PoolClient) => Promise<T>, isolation = 'READ COMMITTED'): Promise<T> {
    const client = await pool.connect()
    try {
      await client.query(`BEGIN ISOLATION LEVEL ${isolation}`)
      const result = await work(client)
      await client.query('COMMIT')
      return result
    } catch (error) {
      await client.query('ROLLBACK')
      throw error
    } finally {
      client.release()
    }
  }
  const write = (client: pg.PoolClient, number: number) => client.query('INSERT INTO invoices VALUES ($1)', [number])
  const written = async () =>
    (await pool.query('SELECT number FROM invoices ORDER BY 1')).rows.map(({ number }) => Number(number))

  it('gives the number of a transaction that was rolled back to the next', async () => {
    expect(await within((client) => invoices.next(client, '2026'))).toBe(1)
    const failed = within(async (client) => {
      expect(await invoices.nextMany(client, '2026', 5)).toEqual({ first: 2, last: 6 })
      throw new Error('no')
    })
    await expect(failed).rejects.toThrow('no')
    expect(await within((client) => invoices.next(client, '2026'))).toBe(2)
  })

  it('concurrency: what is written has no gap and no number twice, whoever fails in between', async () => {
    const tries = await Promise.allSettled(
      Array.from({ length: 60 }, (_, n) =>
        within(async (client) => {
          const number = await invoices.next(client, '2026')
          await write(client, number)
          if (n % 3 === 0) throw new Error('after all not')
          return number
        }),
      ),
    )
    const given = tries.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    expect(inOrder(given)).toEqual(upTo(40))
    expect(await written()).toEqual(upTo(40))
    // Of those, a third was rolled back.
    expect(results).toEqual({ gapless_given: 60 })
  })

  it('concurrency: a connection that dies before the commit gives its number back', async () => {
    const client = await pool.connect()
    client.on('error', () => {})
    await client.query('BEGIN')
    expect(await invoices.next(client, '2026')).toBe(1)
    const { rows: ids } = await client.query('SELECT pg_backend_pid() AS pid')
    await pool.query('SELECT pg_terminate_backend($1)', [ids[0].pid])
    expect(await within((other) => invoices.next(other, '2026'))).toBe(1)
    client.release(true)
  })

  it('shares no row with a sequence that has gaps', async () => {
    const strict = new StrictSequence(await connect(), 'invoice')
    expect(await strict.next('2026')).toBe(1)
    expect(await within((client) => invoices.next(client, '2026'))).toBe(1)
    expect(await strict.next('2026')).toBe(2)
    expect((await rows()).map(({ gapless, last }) => `${gapless} ${last}`)).toEqual(['true 1', 'false 100'])
  })

  it('leaves the settings of the caller alone, whatever they are', async () => {
    await within(async (client) => {
      await client.query("SET LOCAL search_path TO 'public'")
      expect(await invoices.next(client, '2026')).toBe(1)
      const { rows: paths } = await client.query('SHOW search_path')
      expect(paths[0].search_path).toBe('public')
    })
    expect(await within((client) => invoices.next(client, '2026'), 'SERIALIZABLE')).toBe(2)
  })

  it('tells who sees no more than was there when it began to try again', async () => {
    const late = within(async (client) => {
      await client.query('SELECT 1')
      expect(await within((other) => invoices.next(other, '2026'))).toBe(1)
      return invoices.next(client, '2026')
    }, 'REPEATABLE READ')
    await expect(late).rejects.toMatchObject({ code: 'unavailable', outcome: 'retry', retryable: true })
    expect(await within((client) => invoices.next(client, '2026'))).toBe(2)
  })

  it('takes no client outside of a transaction: the number would be gone before what bears it is there', async () => {
    const client = await pool.connect()
    await expect(invoices.next(client, '2026')).rejects.toThrow('client: expected one within a transaction')
    client.release()
    await expect(invoices.next({} as never, '2026')).rejects.toThrow('client: expected a client of pg')
    expect(await rows()).toEqual([])
  })

  it('takes no number beyond 2^53 − 1', async () => {
    await within((client) => invoices.next(client, '2026'))
    await pool.query('UPDATE holdfast.sequences SET last = $1', [MAX])
    await expect(within((client) => invoices.next(client, '2026'))).rejects.toMatchObject({ code: 'counter_overflow' })
  })
})
