import { expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { Holdfast } from '../../src/index.js'
import { NO_REDIS } from './support/paths.js'

it('who does not see Redis keeps a wallet that nobody else uses, whatever Redis has left of it', async () => {
  const postgres = await freshDatabase()
  let reloads = 0
  let late = 0
  let met = 0
  const telemetry = {
    count: (metric: string, { what, verdict }: { what?: string; verdict?: string } = {}) => {
      if (metric === 'holdfast_recoveries_total' && what === 'reload') reloads += 1
      if (metric === 'holdfast_entries_total' && verdict === 'seen') met += 1
      if (metric === 'holdfast_entries_total' && (verdict === 'epoch' || verdict === 'stale')) late += 1
    },
  }
  const sees = await Holdfast.connect({
    redis: await freshRedis(),
    postgres,
    telemetry,
    // Nobody looks into Postgres for what is due.
    engine: { sweepEveryMs: 20, claimMs: 50, dueGraceMs: 3_600_000 },
    audit: false,
  })
  const blind = await Holdfast.connect({ redis: NO_REDIS, postgres, audit: false })
  await sees.wallet('w').open({ currency: 'usd' })
  await sees.wallet('w').credit(1_000, { key: 'in' })
  for (let n = 0; n < 50; n += 1) await sees.wallet('w').hold(1, { key: `left-${n}`, ttl: 200 + 100 * n })
  reloads = 0
  // Redis lets them expire one after the other, and hears each time that another decides.
  for (let n = 0; n < 50 && late < 4; n += 1) {
    await blind.wallet('w').debit(1, { key: `d-${n}` })
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  expect(late).toBeGreaterThan(1)
  // Taken back once; and loaded anew where both let the same hold expire, and the other one was first.
  expect(reloads).toBeLessThanOrEqual(1 + met)
  await Promise.all([sees.close(), blind.close()])
}, 120_000)
