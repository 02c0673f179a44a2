import pg from 'pg'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { Holdfast, Postgres, PostgresFeed } from '../../src/index.js'

/** Told so long before they run out; and what runs out so much later than that is near when a look is that much later. */
const LEAD = 600_000
const HOUR = 3_600_000
const SOON = { timeout: 20_000 }

let hf: Holdfast
let postgres: Postgres
let feed: PostgresFeed
let client: pg.Client
beforeEach(async () => {
  const url = await freshDatabase()
  hf = await Holdfast.connect({ redis: await freshRedis(), postgres: url, audit: false })
  postgres = new Postgres(url)
  feed = new PostgresFeed(postgres)
  await feed.start(HOUR)
  client = new pg.Client(url)
  await client.connect()
  await client.query("SET search_path = 'holdfast'")
})
afterEach(async () => {
  await hf.close()
  await postgres.close()
  await client.end()
})

async function open(id: string) {
  const wallet = hf.wallet(id)
  await wallet.open({ currency: 'usd' })
  await wallet.credit(100, { key: 'c' })
  return wallet
}

/** Everything that was told so far. */
async function told(): Promise<string[]> {
  const { rows } = await client.query(
    "SELECT w.id, i.notice->>'hold' AS hold FROM feed_inbox i JOIN wallets w ON w.ref = i.wallets[1] WHERE i.notice IS NOT NULL ORDER BY i.id",
  )
  return rows.map(({ id, hold }) => `${id} ${hold}`)
}

/** Looks, and gives everything that was told so far. */
async function look(): Promise<string[]> {
  await feed.noteExpiring(LEAD)
  return told()
}

/** The clock that a look goes by. */
const moveClockBy = (ms: number) =>
  client.query(`CREATE OR REPLACE FUNCTION clock_ms() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint + ${ms} $$`)

it('tells of each hold once, however often somebody looks', async () => {
  const wallet = await open('w')
  await wallet.hold(10, { key: 'near', ttl: LEAD + 1 })
  await wallet.hold(10, { key: 'far', ttl: 4 * LEAD })
  await wallet.hold(10, { key: 'short', ttl: LEAD })
  await expect.poll(look, SOON).toEqual(['w near'])
  await Promise.all(Array.from({ length: 5 }, () => feed.noteExpiring(LEAD)))
  expect(await told()).toEqual(['w near'])
})

it('tells of holds that come near, or are made, after the wallet was looked at', async () => {
  const wallet = await open('w')
  await wallet.hold(10, { key: 'first', ttl: LEAD + 1 })
  await wallet.hold(10, { key: 'second', ttl: LEAD + 30_000 })
  await expect.poll(look, SOON).toEqual(['w first'])
  const { rows } = await client.query('SELECT next_at FROM feed_expiring_wallets')
  expect(rows).toHaveLength(1)
  await wallet.hold(10, { key: 'third', ttl: LEAD + 1 })
  await expect.poll(look, SOON).toContain('w third')
  await moveClockBy(30_000)
  await expect.poll(look, SOON).toContain('w second')
  expect([...(await told())].sort()).toEqual(['w first', 'w second', 'w third'])
})

it('tells again of a hold that was given more time', async () => {
  const wallet = await open('w')
  const hold = await wallet.hold(10, { key: 'h', ttl: LEAD + 1 })
  await expect.poll(look, SOON).toEqual(['w h'])
  await hold.extend({ key: 'x', ttl: LEAD + 1_000 })
  await feed.noteExpiring(LEAD)
  await expect.poll(look, SOON).toEqual(['w h', 'w h'])
})

it('looks at some wallets at a time, and at all of them in the end', async () => {
  const ids = Array.from({ length: 501 }, (_, n) => `w${n}`)
  await Promise.all(ids.map(async (id) => (await open(id)).hold(10, { key: 'h', ttl: LEAD + 1 })))
  await client.query('SELECT pg_sleep(0.1)')
  expect(await feed.noteExpiring(LEAD)).toBe(true)
  expect(await told()).toHaveLength(500)
  expect(await feed.noteExpiring(LEAD)).toBe(false)
  expect(new Set(await told())).toEqual(new Set(ids.map((id) => `${id} h`)))
  // Nothing has changed: nobody is looked at again.
  const { rows } = await client.query('SELECT max(looked_at) AS at FROM feed_expiring_wallets')
  await feed.noteExpiring(LEAD)
  expect((await client.query('SELECT max(looked_at) AS at FROM feed_expiring_wallets')).rows).toEqual(rows)
})

it('leaves nothing behind that is over', async () => {
  await (await open('w')).hold(10, { key: 'h', ttl: LEAD + 1 })
  await expect.poll(look, SOON).toEqual(['w h'])
  await client.query(`UPDATE feed_expiring SET expires_at = expires_at - ${3 * LEAD}`)
  await client.query(`UPDATE feed_expiring_wallets SET looked_at = looked_at - ${3 * LEAD}`)
  await hf.wallet('w').holdRef('h').release({ key: 'r' })
  await client.query('UPDATE wallets SET due = 0')
  await feed.noteExpiring(LEAD)
  expect((await client.query('SELECT count(*)::int AS n FROM feed_expiring')).rows).toEqual([{ n: 0 }])
  expect((await client.query('SELECT count(*)::int AS n FROM feed_expiring_wallets')).rows).toEqual([{ n: 0 }])
})
