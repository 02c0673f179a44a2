import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../../test/servers.js'
import { PostgresSales } from '../../src/journal/index.js'
import { Postgres } from '../../src/postgres/index.js'
import { QUERIES } from '../../src/postgres/queries.generated.js'
import { sessionSettings } from '../../src/postgres/session.js'

/** Tens of thousands of items that were put there a moment ago: Postgres has no statistics of them, as in the first minute of a sale. */
const ITEMS = 50_000
/** A few pages of an index and one of the table for each item; one page of the table for a hundred in a row. */
const PAGES_MAX = 20

const STATEMENTS = {
  by_id: [QUERIES.saleItems, 'text, text, text[], integer[]', `'t', 'sale', '{item-7,item-40000}', '{}'`, 2],
  by_number: [QUERIES.saleItems, 'text, text, text[], integer[]', `'t', 'sale', '{}', '{9,49999}'`, 2],
  in_order: [QUERIES.listSaleItems, 'text, text, integer, bigint', `'t', 'sale', 30000, 100`, 100],
} as const

let client: pg.Client
let postgres: Postgres
let sales: PostgresSales

beforeAll(async () => {
  const url = await freshDatabase()
  postgres = new Postgres(url)
  sales = new PostgresSales(postgres)
  client = new pg.Client({ connectionString: url })
  await client.connect()
  for (const [name, value] of sessionSettings({})) await client.query(`SELECT set_config($1, $2, false)`, [name, value])
  await client.query('ALTER TABLE sale_items SET (autovacuum_enabled = off)')
  for (const [name, [query, types, values]] of Object.entries(STATEMENTS)) {
    await client.query(`PREPARE early_${name} (${types}) AS ${query}`)
    await client.query(`EXECUTE early_${name} (${values})`)
  }
  await client.query(
    `INSERT INTO sale_items SELECT 't', 'sale', n, 'item-' || n, n FROM generate_series(1, ${ITEMS}) n`,
  )
  await client.query(`INSERT INTO sale_items SELECT 't', 'tale', n, 'a' || n, n FROM generate_series(1, 3) n`)
})
afterAll(async () => {
  await client.end()
  await postgres.close()
})

describe('items of a sale that Postgres knows nothing of yet', () => {
  it.each(Object.entries(STATEMENTS))(
    'are looked up in their own index: %s',
    async (name, [query, types, values, rows]) => {
      await client.query(`PREPARE late_${name} (${types}) AS ${query}`)
      // With a plan from before there were any, and with one made now.
      for (const prepared of [`early_${name}`, `late_${name}`]) {
        const execute = `EXECUTE ${prepared} (${values})`
        expect((await client.query(execute)).rows).toHaveLength(rows)
        const explained = await client.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${execute}`)
        const [{ Plan }] = explained.rows[0]['QUERY PLAN']
        expect(Plan['Shared Hit Blocks'] + Plan['Shared Read Blocks'], prepared).toBeLessThan(PAGES_MAX)
      }
    },
  )

  it('are those of this sale alone', async () => {
    expect(await sales.items('t', 'sale', { ids: ['item-2', 'item-', 'z'], items: [3, ITEMS + 1] })).toEqual([
      { item: 2, id: 'item-2', quantity: 2 },
      { item: 3, id: 'item-3', quantity: 3 },
    ])
    expect(await sales.itemsAfter('t', 'sale', ITEMS - 1, 10)).toEqual([
      { item: ITEMS, id: `item-${ITEMS}`, quantity: ITEMS },
    ])
    expect(await sales.itemsAfter('t', 'tale', 0, 10)).toHaveLength(3)
    expect(await sales.itemsAfter('t', 'sal', 0, 10)).toEqual([])
    expect(await sales.items('s', 'tale', { ids: ['a1'], items: [1] })).toEqual([])
  })
})
