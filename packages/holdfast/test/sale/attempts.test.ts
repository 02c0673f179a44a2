import { randomUUID } from 'node:crypto'
import { Holdfast, type SaleAttempt, type Telemetry } from 'holdfast'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { SaleAttempts } from '../../src/api/sale/attempts.js'
import { PostgresAttempts } from '../../src/journal/index.js'
import { Postgres } from '../../src/postgres/index.js'
import { QUERIES } from '../../src/postgres/queries.generated.js'

const HOUR = 3_600_000
const NOW = Date.now()
const TERMS = { perUser: 2, startsAt: NOW - 1_000, endsAt: NOW + HOUR }

let hf: Holdfast
let redis: string
let postgres: string
let client: pg.Client
beforeAll(async () => {
  ;[redis, postgres] = [await freshRedis(), await freshDatabase()]
  hf = await Holdfast.connect({ redis, postgres, audit: false })
  client = new pg.Client(postgres)
  await client.connect()
}, 120_000)
afterAll(() => Promise.all([hf.close(), client.end()]))

const told = (attempts: readonly SaleAttempt[]) =>
  attempts.map(({ kind, outcome, code }) => [kind, outcome, code].filter(Boolean).join(' '))

describe('what is tried in a sale', () => {
  it('is on record, accepted or not: of everybody, or of one user', async () => {
    const sale = hf.sale('record')
    await sale.open({ ...TERMS, items: [{ id: 'a' }, { id: 'b' }] })
    const ann = await sale.checkout({ user: 'ann', items: [{ id: 'a' }], key: 'ann-1' })
    await sale.checkout({ user: 'ann', items: [{ id: 'a' }], key: 'ann-1' })
    const refused = [
      sale.checkout({ user: 'bob', items: [{ id: 'a' }], key: 'bob-1' }),
      sale.checkout({ user: 'ann', items: [{ id: 'b' }, { id: 'b' }], key: 'ann-2' }),
      sale.purchase('nonsense'),
      sale.checkout({ user: 'bob', items: [{ id: 'c' }], key: 'bob-2' }),
      sale.checkout({ user: 'bob', items: [], key: 'bob-3' }),
    ]
    await Promise.allSettled(refused)
    await sale.purchase(ann.code)
    await sale.purchase(ann.code)
    await sale.cancel(ann.code).catch(() => {})
    const aborted = sale.checkout({ user: 'eve', items: [{ id: 'b' }], key: 'eve-1', signal: AbortSignal.abort() })
    await expect(aborted).rejects.toMatchObject({ code: 'aborted' })

    // What was wrong with the input is nobody's attempt.
    const all = await sale.attempts()
    expect(told(all).sort()).toEqual(
      [
        'checkout accepted',
        'checkout replayed',
        'checkout refused sold_out',
        'checkout refused duplicate_item',
        'purchase refused checkout_not_found',
        'purchase accepted',
        'purchase replayed',
        'cancel refused checkout_closed',
        'checkout failed aborted',
      ].sort(),
    )
    const [first] = all
    expect(first).toMatchObject({ checkout: ann.code, items: [{ id: 'a', quantity: 1 }] })
    expect(told(await sale.attempts({ user: 'ann' }))).toEqual([
      'checkout accepted',
      'checkout replayed',
      'checkout refused duplicate_item',
      'purchase accepted',
      'purchase replayed',
      'cancel refused checkout_closed',
    ])
    expect(told(await sale.attempts({ user: 'bob' }))).toEqual(['checkout refused sold_out'])
    expect(await sale.attempts({ user: 'nobody' })).toEqual([])

    const pages: SaleAttempt[] = []
    for (let after: string | undefined; ; after = pages.at(-1)?.position) {
      const page = await sale.attempts({ limit: 4, ...(after && { after }) })
      pages.push(...page)
      if (page.length < 4) break
    }
    expect(pages).toEqual(all)
    for (const wrong of [{ after: 'x' }, { limit: 0 }, { limit: 1_001 }, { user: '' }]) {
      await expect(sale.attempts(wrong)).rejects.toMatchObject({ code: 'invalid_argument' })
    }
    // Nobody's name stands there.
    const { rows } = await client.query('SELECT * FROM holdfast.sale_attempts')
    expect(JSON.stringify(rows)).not.toMatch(/ann|bob|eve|nonsense/)
  }, 60_000)

  it('has no room for text that names nothing: items are kept by their numbers', async () => {
    const sale = hf.sale('long')
    const items = Array.from({ length: 99 }, (_, n) => ({ id: `${n}-`.padEnd(255, '"') }))
    await sale.open({ ...TERMS, items, perUser: 99 })
    const twice = (given: { id: string }[]) =>
      sale.checkout({ user: 'ann', items: [...given, { ...(given[0] as { id: string }) }], key: randomUUID() })
    const unknown = items.map(({ id }) => ({ id: id.replaceAll('"', '?') }))
    await expect(twice(unknown)).rejects.toMatchObject({ code: 'invalid_argument' })
    await expect(twice(items)).rejects.toMatchObject({ code: 'duplicate_item' })
    const [attempt, ...others] = await sale.attempts()
    expect(others).toEqual([])
    expect(attempt).toMatchObject({ code: 'duplicate_item' })
    expect(attempt?.items).toEqual([...items, items[0]].map((item) => ({ ...item, quantity: 1 })))
    const { rows } = await client.query(
      "SELECT length(items) FROM holdfast.sale_attempts WHERE code = 'duplicate_item'",
    )
    for (const { length } of rows) expect(length).toBeLessThan(1_000)
  }, 60_000)

  it('is written in batches, and what is left when all ends', async () => {
    const names: string[] = []
    const telemetry: Telemetry = { observe: (_, __, labels) => void names.push(labels?.query ?? '') }
    const other = await Holdfast.connect({ redis, postgres, audit: false, telemetry })
    const sale = other.sale('batches')
    await sale.open({ ...TERMS, items: [{ id: 'a' }] })
    const ask = () => sale.checkout({ user: randomUUID(), items: [{ id: 'a' }], key: randomUUID() })
    await Promise.allSettled(Array.from({ length: 2_500 }, ask))
    await other.close()
    const asked = names.filter((name) => name === 'keepSaleAttempts').length
    expect(asked).toBeGreaterThan(0)
    // One at a time, each with all that has come meanwhile.
    expect(asked).toBeLessThan(100)
    const kept = await hf.sale('batches').attempts({ limit: 1_000 })
    expect(kept).toHaveLength(1_000)
    expect(await hf.sale('batches').attempts({ limit: 1_000, after: kept.at(-1)?.position as string })).toHaveLength(
      1_000,
    )
  }, 120_000)

  it("of one user is found without reading everybody's", async () => {
    const sale = hf.sale('crowded')
    await sale.open({ ...TERMS, items: [{ id: 'a' }] })
    const { code } = await sale.checkout({ user: 'ann', items: [{ id: 'a' }], key: 'ann-1' })
    await sale.purchase(code)
    await sale.attempts()
    const { rows } = await client.query('SELECT * FROM holdfast.sale_attempts WHERE checkout = $1 ORDER BY at', [code])
    const [{ sale: ref, buyer }] = rows
    await client.query(
      `INSERT INTO holdfast.sale_attempts (sale, at, writer, n, kind, outcome, code, buyer, checkout)
       SELECT $1::uuid, g, 7, g, 'checkout', 'refused', 'sold_out', md5(g::text)::uuid, NULL FROM generate_series(1, 20000) g
       UNION ALL SELECT $1::uuid, g, 8, g, 'purchase', 'accepted', NULL, NULL, 'code' || g FROM generate_series(1, 20000) g`,
      [ref],
    )
    await client.query('ANALYZE holdfast.sale_attempts; SET search_path = holdfast')
    expect(told(await sale.attempts({ user: 'ann' }))).toEqual(['checkout accepted', 'purchase accepted'])
    // With the plan for these values, and with the one for whichever.
    for (const mode of ['force_custom_plan', 'force_generic_plan']) {
      await client.query(`SET plan_cache_mode = ${mode}`)
      await client.query(`PREPARE ${mode} (uuid, bigint, bigint, bigint, bigint, uuid) AS ${QUERIES.readBuyerAttempts}`)
      const execute = `EXECUTE ${mode} ('${ref}', 0, 0, 0, 100, '${buyer}')`
      // Once to warm up: reading the catalogue counts as well.
      await client.query(execute)
      const { rows: explained } = await client.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${execute}`)
      const [{ Plan }] = explained[0]['QUERY PLAN']
      expect(Plan['Actual Rows']).toBe(2)
      expect(Plan['Shared Hit Blocks'] + Plan['Shared Read Blocks']).toBeLessThan(50)
    }
    await client.query(`SET enable_seqscan = off; PREPARE prune (bigint, integer) AS ${QUERIES.pruneSaleAttempts}`)
    const { rows: pruning } = await client.query('EXPLAIN (FORMAT JSON) EXECUTE prune (1, 10)')
    expect(JSON.stringify(pruning)).toContain('sale_attempts_at')
  }, 60_000)

  it('is kept for as long as it is wanted', async () => {
    const sale = hf.sale('old')
    await sale.open({ ...TERMS, items: [{ id: 'a' }] })
    await sale.checkout({ user: 'ann', items: [{ id: 'a' }], key: 'ann-1' })
    await sale.checkout({ user: 'bob', items: [{ id: 'a' }], key: 'bob-1' }).catch(() => {})
    expect(await sale.attempts()).toHaveLength(2)
    await client.query(`UPDATE holdfast.sale_attempts SET at = at - ${2 * HOUR} WHERE outcome = 'accepted'`)
    const own = new Postgres(postgres, {})
    const attempts = new SaleAttempts(new PostgresAttempts(own), { retentionMs: HOUR }, {})
    await attempts.prune(HOUR)
    await Promise.all([attempts.close(1_000), own.close()])
    expect(told(await sale.attempts())).toEqual(['checkout refused sold_out'])
    await expect(Holdfast.connect({ redis, postgres, saleAttempts: { retentionMs: 0 } })).rejects.toMatchObject({
      code: 'invalid_argument',
    })
  }, 60_000)
})

describe('the record, when Postgres does not take it', () => {
  const row = { sale: randomUUID().replaceAll('-', ''), kind: 'checkout', outcome: 'refused' } as const
  const attempt = { ...row, code: 'sold_out', buyer: '', checkout: '', items: '' }

  it('waits, goes on where it was, and writes nothing twice', async () => {
    const own = new Postgres(postgres, {})
    const real = new PostgresAttempts(own)
    let failing = true
    let written = 0
    class Forgetful extends PostgresAttempts {
      // Written, and then the answer is lost.
      override async keep(...given: Parameters<PostgresAttempts['keep']>): Promise<void> {
        await real.keep(...given)
        written += given[1].length
        if (failing) throw new Error('connection lost')
      }
    }
    const attempts = new SaleAttempts(new Forgetful(own), { retentionMs: HOUR }, {})
    for (let n = 0; n < 10; n += 1) attempts.note(attempt)
    await attempts.flush()
    expect(written).toBe(10)
    failing = false
    await attempts.flush()
    expect(written).toBe(20)
    const { rows } = await client.query('SELECT * FROM holdfast.sale_attempts WHERE sale = $1', [row.sale])
    expect(rows).toHaveLength(10)
    await Promise.all([attempts.close(1_000), own.close()])
  })

  it('is tried again with growing pauses, however many wait', async () => {
    let tries = 0
    class Away extends PostgresAttempts {
      override async keep(): Promise<void> {
        tries += 1
        throw new Error('connection lost')
      }
    }
    const own = new Postgres(postgres, {})
    const attempts = new SaleAttempts(new Away(own), { retentionMs: HOUR }, {})
    for (let n = 0; n < 5_000; n += 1) {
      attempts.note(attempt)
      if (n % 10 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    // Not with every attempt that comes: the pauses are 0.2, 0.4, 0.8 s and so on, up to 5 s.
    expect(tries).toBeLessThan(20)
    await Promise.all([attempts.close(100), own.close()])
  })

  it('takes up no more than its room, and counts and tells what it can not keep', async () => {
    const lost: Record<string, number> = {}
    const logged: string[] = []
    const telemetry: Telemetry = {
      count: (metric, labels, by = 1) => {
        if (metric === 'holdfast_sale_attempts_lost_total')
          lost[labels?.why ?? ''] = (lost[labels?.why ?? ''] ?? 0) + by
      },
      log: (_, event) => void logged.push(event),
    }
    // Nobody listens there.
    const own = new Postgres('postgres://nobody@127.0.0.1:1/nothing', {})
    const attempts = new SaleAttempts(new PostgresAttempts(own), { retentionMs: HOUR }, telemetry)
    for (let n = 0; n < 100_500; n += 1) attempts.note(attempt)
    expect(lost).toEqual({ full: 500 })
    expect(logged).toContain('sale_attempts_lost')
    await attempts.close(2_000)
    expect(lost).toEqual({ full: 500, closed: 100_000 })
    await own.close()
  })
})

describe('the record of long attempts, which no sale was found for', () => {
  const items = JSON.stringify(Array.from({ length: 100 }, (_, n) => ({ id: `${n}`.padEnd(255, 'x'), quantity: 1 })))
  const long = { sale: '', kind: 'checkout', outcome: 'failed', code: 'unavailable', buyer: '', checkout: '' } as const

  it('has room for so many characters, and writes no more than a million at once', async () => {
    const batches: number[] = []
    let lost = 0
    let isAway = true
    class Away extends PostgresAttempts {
      override async keep(...[, rows]: Parameters<PostgresAttempts['keep']>): Promise<void> {
        if (isAway) throw new Error('connection lost')
        batches.push(rows.length)
      }
    }
    const own = new Postgres(postgres, {})
    const telemetry: Telemetry = {
      count: (_, __, by = 1) => {
        lost += by
      },
    }
    const attempts = new SaleAttempts(new Away(own), { retentionMs: HOUR }, telemetry)
    for (let n = 0; n < 2_000; n += 1) attempts.note({ ...long, items })
    const room = Math.floor(16_000_000 / items.length)
    expect(lost).toBe(2_000 - room)
    await attempts.flush()
    isAway = false
    await attempts.flush()
    expect(batches.reduce((sum, one) => sum + one, 0)).toBe(room)
    expect(Math.max(...batches)).toBe(Math.floor(1_000_000 / items.length))
    // There is room again.
    for (let n = 0; n < room; n += 1) attempts.note({ ...long, items })
    expect(lost).toBe(2_000 - room)
    await Promise.all([attempts.close(1_000), own.close()])
  })
})

it('costs callers no wait: they are answered while the record can not be written', async () => {
  const sale = hf.sale('free')
  await sale.open({ ...TERMS, items: [{ id: 'a', quantity: 50 }] })
  const blocker = new pg.Client(postgres)
  await blocker.connect()
  await blocker.query('BEGIN; LOCK TABLE holdfast.sale_attempts IN ACCESS EXCLUSIVE MODE')
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, n) => sale.checkout({ user: `u${n}`, items: [{ id: 'a' }], key: `u${n}` })),
  )
  expect(answers).toHaveLength(50)
  await blocker.query('ROLLBACK')
  await blocker.end()
  expect(await sale.attempts()).toHaveLength(50)
}, 60_000)
