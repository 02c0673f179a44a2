import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { LeaseLost, underLease } from '../../src/audit/index.js'
import { systemClock } from '../../src/engine/index.js'
import { type AuditReport, Postgres } from '../../src/index.js'
import { PostgresAudits } from '../../src/journal/index.js'
import { until } from '../api/support/paths.js'
import { type Grounds, grounds, tamper } from './support/drift.js'

let on: Grounds
beforeEach(async () => {
  on = await grounds()
})
afterEach(() => on.close())

const lease = (shard: number, holder: string, ms: number) =>
  on.postgres.query(
    `INSERT INTO audit_shards VALUES ($1, $2, clock_ms() + $3, 0)
     ON CONFLICT (shard) DO UPDATE SET holder = $2, lease_until = clock_ms() + $3`,
    [shard, holder, ms],
  )

const leasedUntil = async () =>
  Number((await on.postgres.query('SELECT lease_until FROM audit_shards')).rows[0].lease_until)

describe('audits in the background', () => {
  it('come by themselves, and put right what they find', async () => {
    const reports: AuditReport[] = []
    const counts = new Map<string, number>()
    const hf = await on.connect({
      audit: { every: 200, limits: { confirmAfterMs: 5 }, onReport: (report) => void reports.push(report) },
      telemetry: {
        count: (metric, labels = {}, by = 1) => {
          const name = [metric, ...Object.values(labels)].join(' ')
          counts.set(name, (counts.get(name) ?? 0) + by)
        },
      },
    })
    await hf.wallet('w').open({ currency: 'usd' })
    await hf.wallet('w').credit(10, { key: 'in' })
    await tamper(on, 'w', 'available', 90)
    await until(async () => (await hf.wallet('w').get({ pending: true }))?.available === 10, 10_000)
    await until(() => reports.some(({ findings }) => findings.length > 0))
    const found = reports.flatMap(({ findings }) => findings)
    expect(found).toMatchObject([{ cause: 'hot_state_differs', field: 'available', action: 'repaired' }])
    for (const { shards } of reports) expect(shards).toHaveLength(1)
    await until(() => new Set(reports.flatMap(({ shards }) => shards)).size === 2)
    expect(counts.get('holdfast_audit_findings_total hot_state_differs repaired')).toBe(1)
    expect(counts.get('holdfast_audits_total done')).toBe(reports.length)
    expect(counts.get('holdfast_audit_wallets_total journal')).toBeGreaterThan(0)
  })

  it('are shared out over processes: each shard as often as with one of them', async () => {
    const reports: AuditReport[] = []
    const audit = { every: 400, onReport: (report: AuditReport) => void reports.push(report) }
    await Promise.all([on.connect({ audit }), on.connect({ audit }), on.connect({ audit })])
    reports.length = 0
    const began = performance.now()
    await sleep(2_500)
    await until(() => reports.length > 3)
    // 2 shards each 400 ms give or take a tenth, and one of each that was under way; were they not shared out, three times as many.
    expect(reports.length).toBeLessThanOrEqual(2 * (1 + Math.ceil((performance.now() - began) / 360)))
  })

  it('are off where that is asked for', async () => {
    await on.connect({ audit: false })
    await sleep(300)
    expect((await on.postgres.query('SELECT FROM audit_shards')).rowCount).toBe(0)
  })
})

describe('a shard', () => {
  it('that another process is auditing is left to it', async () => {
    const hf = await on.connect()
    await lease(1, 'another', 60_000)
    expect(await hf.audit({ wait: 0 })).toMatchObject({ shards: [0], busy: [1] })
  })

  it('is waited for for a while', async () => {
    const hf = await on.connect()
    await lease(1, 'another', 400)
    expect(await hf.audit({ wait: 5_000 })).toMatchObject({ shards: [0, 1], busy: [] })
  })

  it('is one process’s at a time, however many ask', async () => {
    const postgres = new Postgres(on.options.postgres)
    const leases = new PostgresAudits(postgres)
    await leases.prepare(3, 0)
    let working = 0
    const most: number[] = []
    const ask = (holder: string) =>
      underLease(
        { leases, clock: systemClock, holder },
        { shard: 2, everyMs: 0, stop: new AbortController().signal },
        async () => {
          working += 1
          most.push(working)
          await sleep(20)
          working -= 1
        },
      )
    for (let round = 0; round < 5; round += 1) await Promise.all(['a', 'b', 'c', 'd'].map(ask))
    expect(most.every((count) => count === 1)).toBe(true)
    expect(most.length).toBeGreaterThanOrEqual(5)
    await postgres.close()
  })

  it('is kept by renewing, and given up at once when it was lost', async () => {
    const postgres = new Postgres(on.options.postgres)
    const leases = new PostgresAudits(postgres)
    await leases.prepare(1, 0)
    const asked = { shard: 0, everyMs: 0, stop: new AbortController().signal }
    const work = underLease({ leases, clock: systemClock, holder: 'a', leaseMs: 5_000 }, asked, async (_, signal) => {
      const first = await leasedUntil()
      await until(() => Date.now() > first)
      expect(await leasedUntil()).toBeGreaterThan(first)
      expect(signal.aborted).toBe(false)
      await lease(0, 'b', 60_000)
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve))
      signal.throwIfAborted()
    })
    await expect(work).rejects.toBeInstanceOf(LeaseLost)
    const { rows } = await on.postgres.query('SELECT holder FROM audit_shards')
    expect(rows).toEqual([{ holder: 'b' }])
    await postgres.close()
  })

  it('is given back when its caller stops waiting, and when the instance is closed', async () => {
    const hf = await on.connect()
    const stop = new AbortController()
    stop.abort()
    await expect(hf.audit({ signal: stop.signal })).rejects.toMatchObject({ code: 'aborted' })
    await lease(0, 'another', 60_000)
    const waiting = hf.audit({ shards: [0] })
    const closed = expect(waiting).rejects.toMatchObject({ code: 'unavailable' })
    await sleep(50)
    await hf.close()
    await closed
    const { rows } = await on.postgres.query('SELECT holder FROM audit_shards WHERE shard = 0')
    expect(rows).toEqual([{ holder: 'another' }])
  })
})

it('refuses what it can not read', async () => {
  const hf = await on.connect()
  for (const options of [
    { shards: [2] },
    { shards: 1 },
    { repair: 'no' },
    { full: 1 },
    { wait: -1 },
    { onProgress: 1 },
    { signal: 1 },
    7,
  ]) {
    await expect(hf.audit(options as never)).rejects.toMatchObject({ code: 'invalid_argument' })
  }
  for (const audit of [true, { every: 0 }, { every: 'often' }, { repair: 1 }]) {
    await expect(on.connect({ audit: audit as never })).rejects.toMatchObject({ code: 'invalid_argument' })
  }
})
