import { afterAll, beforeAll, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { Holdfast } from '../../src/index.js'
import { PostgresJournal } from '../../src/journal/index.js'
import { Stocks } from '../../src/journal/stock.js'
import { Postgres, readSettings } from '../../src/postgres/index.js'
import { Keys } from '../../src/redis/index.js'

/** What is read of a stock is remembered: as much as the journal still says. */
let hf: Holdfast
let postgres: Postgres
let ref: string
let orders = 0

beforeAll(async () => {
  const database = await freshDatabase()
  hf = await Holdfast.connect({ redis: await freshRedis(), postgres: database, audit: false })
  postgres = new Postgres(database)
  const { secret } = await readSettings(postgres)
  ref = new Keys({ tenant: hf.tenant, secret, shards: 64 }).ofSale('friday', 0).ref
  const items = Array.from({ length: 50 }, (_, n) => ({ id: `item-${n}`, quantity: 100 }))
  await hf.sale('friday').open({ items, perUser: 10, startsAt: Date.now() - 1_000, endsAt: Date.now() + 60_000 })
})
afterAll(async () => {
  await hf.close()
  await postgres.close()
})

async function sell(count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    const order = orders++
    const items = [{ id: `item-${order % 50}` }, { id: `item-${(order + 7) % 50}`, quantity: 2 }]
    const { code } = await hf
      .sale('friday')
      .checkout({ user: `user-${order % 9}-${order >> 3}`, items, key: `${order}` })
    if (order % 3 === 0) await hf.sale('friday').purchase(code)
    if (order % 3 === 1) await hf.sale('friday').cancel(code)
  }
}

/** Counts the rows that are read. */
function counted() {
  let rows = 0
  const stocks = new Stocks(async (name, values) => {
    const read = await postgres.query(name, values)
    rows += read.length
    return read as never
  })
  return { stocks, rows: () => rows }
}

const seqNow = async () => (await new PostgresJournal(postgres).read([ref]))[0]?.seq as number
const afresh = (seq: number) => new Stocks((name, values) => postgres.query(name, values)).at(ref, seq)

it('reads only what came since, and is what the whole journal says', async () => {
  const { stocks, rows } = counted()
  await sell(40)
  const first = await seqNow()
  expect(await stocks.at(ref, first)).toEqual(await afresh(first))
  expect(rows()).toBe(first)
  await sell(5)
  const second = await seqNow()
  expect(await stocks.at(ref, second)).toEqual(await afresh(second))
  // And the entry that it rests on.
  expect(rows()).toBe(second + 1)
  // An earlier one is not read off a later one.
  expect(await stocks.at(ref, first)).toEqual(await afresh(first))
  expect(await stocks.at(ref, second)).toEqual(await afresh(second))
})

it('is read once by many who ask at once, and is the own of each', async () => {
  const { stocks, rows } = counted()
  const seq = await seqNow()
  const [mine, ...others] = await Promise.all(Array.from({ length: 5 }, () => stocks.at(ref, seq)))
  expect(rows()).toBe(seq + 4)
  mine?.taken.clear()
  mine?.buyers.clear()
  mine?.checkouts.clear()
  mine?.keys.clear()
  const whole = await afresh(seq)
  for (const other of others) expect(other).toEqual(whole)
  expect(await stocks.at(ref, seq)).toEqual(whole)
})

it('is not half of what came since, where one entry of it could not be read', async () => {
  const { stocks } = counted()
  await stocks.at(ref, await seqNow())
  // Of three orders the first is bought.
  orders += (3 - (orders % 3)) % 3
  await sell(6)
  const seq = await seqNow()
  const whole = await afresh(seq)
  const { last, metadata } = await postgres.transaction(async (tx) => {
    const [bought] = await tx.execute<{ seq: string; metadata: string }>(
      'last',
      `SELECT seq, metadata FROM entries WHERE wallet = '${ref}' AND kind = 'settle' ORDER BY seq DESC LIMIT 1`,
    )
    return { last: Number(bought?.seq), metadata: bought?.metadata as string }
  })
  const write = (text: string) =>
    postgres.transaction(async (tx) => {
      await tx.execute('disable', 'ALTER TABLE entries DISABLE TRIGGER ALL')
      await tx.execute('write', `UPDATE entries SET metadata = '${text}' WHERE seq = ${last} AND wallet = '${ref}'`)
      await tx.execute('enable', 'ALTER TABLE entries ENABLE TRIGGER ALL')
    })
  await write('nobody reads this')
  await expect(stocks.at(ref, seq)).rejects.toThrow(`Entry ${last} does not say what it did to the stock`)
  await write(metadata)
  expect(await stocks.at(ref, seq)).toEqual(whole)
})

it('is read anew where the journal has another history', async () => {
  const { stocks, rows } = counted()
  const seq = await seqNow()
  await stocks.at(ref, seq)
  // As if Postgres had been put back to before its last entry, and another one been made since.
  await sell(2)
  const later = await seqNow()
  await postgres.transaction(async (tx) => {
    await tx.execute('disable', 'ALTER TABLE entries DISABLE TRIGGER ALL')
    await tx.execute(
      'other',
      `UPDATE entries SET hash = decode(md5('other'), 'hex') WHERE seq = ${seq} AND wallet = '${ref}'`,
    )
    await tx.execute('enable', 'ALTER TABLE entries ENABLE TRIGGER ALL')
  })
  const before = rows()
  expect(await stocks.at(ref, later)).toEqual(await afresh(later))
  expect(rows() - before).toBeGreaterThanOrEqual(later)
})

it('is read, and remembered, though Postgres does not take the note of it', async () => {
  await sell(600)
  const seq = await seqNow()
  let [notes, rows] = [0, 0]
  const stocks = new Stocks(async (name, values) => {
    if (name === 'writeStockCheckpoint') {
      notes += 1
      throw new Error('total size of jsonb array elements exceeds the maximum')
    }
    const read = await postgres.query(name, values)
    rows += read.length
    return read as never
  })
  const stock = await stocks.at(ref, seq)
  expect([notes, rows]).toEqual([1, seq])
  expect(await stocks.at(ref, seq)).toEqual(stock)
  // The last of them, to see that it is still there.
  expect([notes, rows]).toEqual([1, seq + 1])
  expect(stock).toEqual(await afresh(seq))
}, 120_000)
