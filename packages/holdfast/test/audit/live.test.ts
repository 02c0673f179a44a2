import { startRedis } from '@holdfast/services'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freshDatabase } from '../../../../test/servers.js'
import { type AuditReport, Holdfast } from '../../src/index.js'
import { until } from '../api/support/paths.js'
import { randomFrom } from '../processes/support/operations.js'
import { Workers } from '../processes/support/workers.js'

/** Audits that run again and again beside processes that use few wallets all at once, die, and lose Redis's memory. */
const WALLETS = ['one', 'two', 'three', 'four']
const NAMES = ['a', 'b', 'c']
const SEED = 20_261_115

let server: Awaited<ReturnType<typeof startRedis>>
let workers: Workers
let hf: Holdfast
let options: { redis: string; postgres: string; shards: number; audit: false }

beforeAll(async () => {
  server = await startRedis({ source: 'installed' })
  workers = await Workers.prepare()
  options = { redis: server.url, postgres: await freshDatabase(), shards: 2, audit: false }
  hf = await Holdfast.connect({ ...options, engine: { sweepEveryMs: 50, dueGraceMs: 0 } })
  for (const id of WALLETS) {
    await hf.wallet(id).open({ currency: 'usd' })
    await hf.wallet(id).credit(1_000, { key: 'in' })
  }
})
afterAll(async () => {
  await workers.stop()
  await hf.close()
  await server.stop()
})

it('finds nothing wrong where nothing is', async () => {
  const chance = randomFrom(SEED)
  const redis = new Redis(server.url)
  const raw = (work: () => Promise<unknown>) => work().catch(() => {})
  const start = async (name: string) => {
    const worker = await workers.start(name, options)
    const seed = Math.floor(chance() * 2 ** 32)
    worker.order({ type: 'random', name, seed, count: 700, callers: 8, wallets: WALLETS, others: NAMES })
    return worker
  }
  const running = await Promise.all(NAMES.map(start))
  let working = true
  const reports: AuditReport[] = []
  const audits = (async () => {
    while (working) reports.push(await hf.audit({ full: reports.length % 3 === 0 }))
  })()
  const begun = () => workers.history.length
  for (const [index, worker] of running.slice(0, 2).entries()) {
    const from = begun()
    await until(() => begun() > from + 200, 60_000)
    await worker.kill()
    running.push(await start(`${worker.name}${index}`))
    await raw(() => (index === 0 ? redis.flushall() : redis.del(...WALLETS)))
    const keys = await redis.keys('hf:*:wallet:*')
    if (keys[0]) await redis.del(keys[0])
  }
  await server.kill()
  await server.restart()
  await Promise.all(running.slice(2).map((worker) => worker.told('done')))
  await until(
    async () => (await Promise.all(WALLETS.map((id) => hf.wallet(id).get()))).every((w) => w?.reserved === 0),
    60_000,
  )
  working = false
  await audits
  redis.disconnect()

  expect(reports.flatMap(({ findings }) => findings)).toEqual([])
  const sum = (read: (report: AuditReport) => number) => reports.reduce((total, report) => total + read(report), 0)
  // They did look: again and again, at states that were being changed.
  expect(reports.length).toBeGreaterThan(10)
  expect(sum(({ hot }) => hot)).toBeGreaterThan(20)
  expect(sum(({ entries }) => entries)).toBeGreaterThan(2_000)
  const last = await hf.audit({ full: true })
  expect(last).toMatchObject({ findings: [], blind: [], busy: [], unsettled: 0, wallets: WALLETS.length })
}, 300_000)
