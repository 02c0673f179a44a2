import { Cluster, Redis } from 'ioredis'
import pg from 'pg'
import { afterEach, expect, it } from 'vitest'
import { freshDatabase, sharedCluster, sharedSentinel } from '../../../../test/servers.js'
import { Holdfast } from '../../src/index.js'

/** What an audit reads of Redis lies on one node at a time, wherever the shards are. */
let hf: Holdfast
afterEach(() => hf.close())

it.each([
  [
    'a Cluster',
    async () => {
      const addresses = await sharedCluster()
      return { redis: { cluster: addresses }, raw: new Cluster(addresses) }
    },
  ],
  [
    'Sentinel',
    async () => {
      const group = await sharedSentinel()
      return { redis: group, raw: new Redis(group) }
    },
  ],
])('audits and rebuilds on %s', { timeout: 120_000 }, async (_, place) => {
  const { redis, raw } = await place()
  const postgres = await freshDatabase()
  hf = await Holdfast.connect({ redis, postgres, shards: 8, audit: false })
  const ids = Array.from({ length: 24 }, (_, n) => `user_${n}`)
  for (const id of ids) {
    await hf.wallet(id).open({ currency: 'usd' })
    await hf.wallet(id).credit(100, { key: 'in' })
    await hf.wallet(id).hold(30, { key: 'h', ttl: 3_600_000 })
  }
  const first = await hf.audit()
  expect(first).toMatchObject({ wallets: 24, hot: 24, blind: [], findings: [] })

  // The servers are shared: there are wallets of other tests beside these.
  const client = new pg.Client(postgres)
  await client.connect()
  const { rows } = await client.query<{ ref: string }>(
    "SELECT replace(ref::text, '-', '') AS ref FROM holdfast.wallets",
  )
  await client.end()
  for (const { ref } of rows) {
    const shard = Number.parseInt(ref.slice(0, 8), 16) % 8
    expect(await raw.hdel(`hf:default:{${shard}}:wallet:v1:${ref}`, 'h:h')).toBe(1)
  }
  const { findings, counts } = await hf.audit()
  expect(findings.filter(({ cause }) => cause === 'hot_hold_missing')).toHaveLength(24)
  expect(counts.unrepaired).toBe(0)
  expect(await hf.rebuild({ force: true })).toMatchObject({ wallets: 24, loaded: 24, failed: 0 })
  expect((await hf.audit()).findings).toEqual([])
  raw.disconnect()
})
