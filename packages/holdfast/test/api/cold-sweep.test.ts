import { Redis } from 'ioredis'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { Holdfast, type Wallet } from '../../src/index.js'
import { NO_REDIS, onBothPaths, type Path, until } from './support/paths.js'

/** Two wallets a page. */
const SWEPT = { sweepEveryMs: 20, dueGraceMs: 50, claimMax: 2 }
const TTL = 40

const isExpired = async (wallet: Wallet) => (await wallet.get())?.reserved === 0

describe('a hold that nobody touches, of a wallet that is not in Redis', () => {
  it('is expired while Redis is away, behind pages of wallets that only Redis may decide for', async () => {
    const redis = await freshRedis()
    const postgres = await freshDatabase()
    const hf = await Holdfast.connect({ redis, postgres, engine: { sweepEveryMs: 600_000 } })
    const hold = async (id: string, durability: 'memory' | 'ledger') => {
      const wallet = hf.wallet(id)
      await wallet.open({ currency: 'usd' })
      await wallet.credit(100, { key: 'in', durability })
      await wallet.hold(60, { key: 'call', ttl: TTL, durability })
      await until(async () => (await wallet.get())?.reserved === 60)
    }
    for (const id of ['m1', 'm2', 'm3', 'm4', 'm5']) await hold(id, 'memory')
    for (const id of ['l1', 'l2', 'l3']) await hold(id, 'ledger')
    await hf.close()
    const sweeper = await Holdfast.connect({ redis: NO_REDIS, postgres, engine: SWEPT })
    for (const id of ['l1', 'l2', 'l3']) await until(() => isExpired(sweeper.wallet(id)))
    for (const id of ['m1', 'm2', 'm3', 'm4', 'm5']) expect(await isExpired(sweeper.wallet(id))).toBe(false)
    await sweeper.close()
    // With Redis they have their turn.
    const back = await Holdfast.connect({ redis, postgres, engine: SWEPT })
    for (const id of ['m1', 'm2', 'm3', 'm4', 'm5']) await until(() => isExpired(back.wallet(id)))
    await back.close()
  })

  it('is expired though Redis has a state that knows nothing of it: it was made by a process that did not see Redis, and is gone', async () => {
    const redis = await freshRedis()
    const postgres = await freshDatabase()
    const engine = { sweepEveryMs: 600_000 }
    const sees = await Holdfast.connect({ redis, postgres, engine })
    const wallet = sees.wallet('w')
    await wallet.open({ currency: 'usd' })
    await wallet.credit(100, { key: 'in' })
    const blind = await Holdfast.connect({ redis: NO_REDIS, postgres, engine })
    await blind.wallet('w').hold(60, { key: 'call', ttl: TTL })
    await blind.close()
    const sweeper = await Holdfast.connect({ redis, postgres, engine: SWEPT })
    await until(() => isExpired(sweeper.wallet('w')))
    await Promise.all([sees.close(), sweeper.close()])
  })

  onBothPaths((path) => {
    it('does not wait for one whose row somebody keeps locked', async () => {
      const wallets = []
      for (let n = 0; n < 6; n += 1) wallets.push(await path.wallet(100))
      for (const wallet of wallets) await wallet.hold(60, { key: 'call', ttl: TTL })
      await forget(path)
      const [stuck, ...others] = wallets as [Wallet, ...Wallet[]]
      const client = new pg.Client({ connectionString: path.databaseUrl, options: '-c search_path=holdfast' })
      await client.connect()
      await client.query('BEGIN')
      await client.query('SELECT FROM wallets WHERE id = $1 FOR UPDATE', [stuck.id])
      // Who touches it does not give up before this test would.
      const sweeper = await path.another({ timeout: 60_000, engine: SWEPT })
      for (const wallet of others) await until(() => isExpired(wallet))
      expect(await isExpired(stuck)).toBe(false)
      await client.query('ROLLBACK')
      await client.end()
      await until(() => isExpired(stuck))
      await sweeper.close()
    })
  })
})

/** Everything that Redis knows is gone, the agenda included. */
async function forget(path: Path): Promise<void> {
  if (path.name === 'Postgres') return
  const redis = new Redis(path.redisUrl)
  await redis.flushdb()
  redis.disconnect()
}
