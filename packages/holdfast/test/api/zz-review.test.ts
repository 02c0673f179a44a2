import { Redis } from 'ioredis'
import pg from 'pg'
import { expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { Holdfast } from '../../src/index.js'
import { NO_REDIS, onBothPaths, refusal } from './support/paths.js'

const HOUR = 3_600_000

onBothPaths((path) => {
  it('A: a marked retry of a refund out of a hold', async () => {
    const wallet = await path.wallet(100)
    const hold = await wallet.hold(60, { key: 'call', ttl: HOUR })
    const { entry } = await hold.capture(20, { key: 'c1' })
    const first = await wallet.refund(entry.seq, 5, { key: 'r1' })
    expect(await wallet.refund(entry.seq, 5, { key: 'r1', retry: true })).toEqual({ ...first, replayed: true })
  })
})

it('B: a damaged hold heals in a process that never knew the wallet', async () => {
  const [redis, postgres] = [await freshRedis(), await freshDatabase()]
  const a = await Holdfast.connect({ redis, postgres, engine: { sweepEveryMs: 600_000 } })
  const w = a.wallet('w')
  await w.open({ currency: 'usd' })
  await w.credit(100, { key: 'c' })
  await w.hold(10, { key: 'h', ttl: HOUR })
  await a.close()
  const raw = new Redis(redis)
  const key = (await raw.keys('*:wallet:*'))[0] as string
  await raw.hset(key, 'h:h', 'garbage')
  let decisions = 0
  const b = await Holdfast.connect({ redis, postgres, timeout: 3_000, engine: { sweepEveryMs: 600_000 },
    telemetry: { count: (n) => { if (n === 'holdfast_decisions_total') decisions += 1 } } })
  const result = await b.wallet('w').holdRef('h').capture(1, { key: 'x' }).catch((e) => e)
  console.log('B', decisions, result.code ?? 'ok')
  const other = await b.wallet('w').credit(1, { key: 'y' }).catch((e) => e)
  console.log('B2', decisions, other.code ?? 'ok')
  raw.disconnect(); await b.close()
  expect(result.code).toBeUndefined()
})

it('B3: a wallet key of another type', async () => {
  const [redis, postgres] = [await freshRedis(), await freshDatabase()]
  const a = await Holdfast.connect({ redis, postgres, timeout: 3_000, engine: { sweepEveryMs: 600_000 } })
  const w = a.wallet('w')
  const v = a.wallet('v')
  for (const x of [w, v]) { await x.open({ currency: 'usd' }); await x.credit(100, { key: 'c' }) }
  const raw = new Redis(redis)
  for (const key of await raw.keys('*:wallet:*')) {
    if (await raw.hexists(key, 'k:c')) { await raw.set(key, 'oops'); break }
  }
  const results = await Promise.all([w, v].map((x) => x.credit(1, { key: 'd' }).catch((e) => e)))
  console.log('B3', results.map((r) => r.code ?? r.entry.seq))
  const keys = await raw.keys('*:wallet:*')
  console.log('B3', await Promise.all(keys.map((k) => raw.type(k))))
  raw.disconnect(); await a.close()
})

it('C: a locked row of one wallet', async () => {
  const [redis, postgres] = [await freshRedis(), await freshDatabase()]
  const logs: string[] = []
  const a = await Holdfast.connect({ redis, postgres, engine: { sweepEveryMs: 600_000 }, telemetry: { log: (_l, e) => logs.push(e) } })
  const w = a.wallet('w')
  const v = a.wallet('v')
  for (const x of [w, v]) { await x.open({ currency: 'usd' }) }
  await v.credit(100, { key: 'c' })
  const db = new pg.Client(postgres); await db.connect()
  await db.query('BEGIN'); await db.query("SELECT * FROM holdfast.wallets WHERE id = 'w' FOR UPDATE")
  const stuck = w.credit(1, { key: 'c', timeout: 6_000 }).catch((e) => e)
  const codes = new Map<string, number>()
  for (let n = 0; n < 300; n += 1) {
    const r = await v.debit(n % 2 ? 1000 : 0 + 1, { key: `d${n}` }).catch((e) => e)
    const c = r.code ? `${r.code} ${r.message}` : 'ok'
    codes.set(c, (codes.get(c) ?? 0) + 1)
    await new Promise((r) => setTimeout(r, 20))
  }
  console.log('C', codes, logs.filter((l) => l.startsWith('postgres')), (await stuck).code)
  await db.query('ROLLBACK'); await db.end(); await a.close()
}, 30_000)

it('D: many wallets without Redis', async () => {
  const postgres = await freshDatabase()
  const logs = new Map<string, number>()
  const a = await Holdfast.connect({ redis: NO_REDIS, postgres, engine: { sweepEveryMs: 600_000 }, telemetry: { log: (_l, e) => logs.set(e, (logs.get(e) ?? 0) + 1) } })
  const n = 6000
  const wallets = Array.from({ length: n }, (_, i) => a.wallet(`w${i}`))
  for (let i = 0; i < n; i += 100) await Promise.all(wallets.slice(i, i + 100).map((w) => w.open({ currency: 'usd' })))
  const started = Date.now()
  const codes = new Map<string, number>()
  await Promise.all(wallets.map((w) => w.credit(1, { key: 'c' }).then(() => 'ok', (e) => `${e.code}: ${e.message}`).then((c) => codes.set(c, (codes.get(c) ?? 0) + 1))))
  console.log('D', Date.now() - started, codes, logs)
  await a.close()
}, 60_000)

it('I: close twice', async () => {
  const [redis, postgres] = [await freshRedis(), await freshDatabase()]
  const a = await Holdfast.connect({ redis, postgres, engine: { sweepEveryMs: 600_000 } })
  const w = a.wallet('w'); await w.open({ currency: 'usd' })
  const op = w.credit(1, { key: 'c' })
  const first = a.close().then(() => 'closed')
  const second = a.close().then(() => 'closed')
  const late = new Promise((r) => setTimeout(r, 4000, 'hangs'))
  console.log('I', await Promise.race([first, late]), await Promise.race([second, late]), (await op).available)
}, 20_000)
