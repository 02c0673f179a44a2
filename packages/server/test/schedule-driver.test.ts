import { Holdfast, Postgres } from 'holdfast'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../test/servers.js'
import type { ServerTelemetry } from '../src/metrics/index.js'
import { ScheduleDriver } from '../src/sales/index.js'

const HOUR = 3_600_000
const HOURLY = { every: HOUR, ahead: 1_000, perUser: 1, items: [{ id: 'a' }] }

let urls: { redis: string; postgres: string }
let hf: Holdfast
let postgres: Postgres
let pool: pg.Pool
const events: string[] = []
const telemetry = {
  count: () => {},
  log: (_: string, event: string) => events.push(event),
} as unknown as ServerTelemetry

beforeAll(async () => {
  urls = { redis: await freshRedis(), postgres: await freshDatabase() }
  hf = await Holdfast.connect({ ...urls, audit: false })
  postgres = new Postgres(urls.postgres)
  pool = new pg.Pool({ connectionString: urls.postgres, max: 2 })
})
afterAll(async () => {
  await hf.close()
  await postgres.close()
  await pool.end()
})

const isReady = async (sale: string): Promise<boolean> =>
  (await pool.query('SELECT ready FROM holdfast.sales WHERE id = $1', [sale])).rows[0].ready

it('opens what is due, however many schedules of the same or another tenant can never be opened', async () => {
  // What a sale of the name of the slot, with other times, and then the schedule leave behind, more often than a server has schedules at work.
  const slot = new Date(Math.floor(Date.now() / HOUR) * HOUR).toISOString().replace(/\D/g, '').slice(0, 10)
  const template = JSON.stringify({ everyMs: HOUR, offsetMs: 0, aheadMs: 1_000, options: { perUser: 1 } })
  const blocked = `FROM generate_series(1, 1200) n`
  await pool.query(
    `INSERT INTO holdfast.sales (tenant, id, terms, opened_at, ready)
     SELECT 'many', 'x' || n || '-${slot}', '{"startsAt": 0, "endsAt": 1}', 0, true ${blocked}`,
  )
  await pool.query(
    `INSERT INTO holdfast.sale_schedules (tenant, id, template, items, item_count)
     SELECT 'many', 'x' || n, $1, '[["a", 1]]', 1 ${blocked}`,
    [template],
  )
  // Less urgent than all of them: their last slot has only just ended.
  for (const tenant of ['one', 'many']) {
    await pool.query(
      `INSERT INTO holdfast.sale_schedules (tenant, id, template, items, item_count, opened_until)
       VALUES ($1, 'good', $2, '[["a", 1]]', 1, $3)`,
      [tenant, template, Math.floor(Date.now() / HOUR) * HOUR],
    )
  }
  const driver = new ScheduleDriver({ holdfast: hf, postgres, telemetry }, 1_000)
  const opened = async (tenant: string) => (await hf.forTenant(tenant).saleSchedule('good').slots()).length
  await expect.poll(() => opened('one'), { timeout: 60_000 }).toBeGreaterThan(0)
  await expect.poll(() => opened('many'), { timeout: 60_000 }).toBeGreaterThan(0)
  await driver.close()
  await pool.query(`UPDATE holdfast.sale_schedules SET paused = true WHERE tenant = 'many'`)
}, 150_000)

it('finishes what somebody has left, also where the first try fails, and where it is paused since', async () => {
  const schedule = hf.saleSchedule('left')
  await schedule.start({ ...HOURLY, every: 24 * HOUR })
  await schedule.pause()
  await schedule.stop()
  const sale = (await schedule.slots())[0]?.sale as string
  // As who died over it minutes ago has left it.
  await pool.query('UPDATE holdfast.sales SET ready = false WHERE id = $1', [sale])
  await pool.query('UPDATE holdfast.sale_slots SET opened_at = opened_at - 600000 WHERE sale = $1', [sale])
  const lock = new pg.Client(urls.postgres)
  await lock.connect()
  await lock.query('BEGIN; LOCK TABLE holdfast.sale_items IN ACCESS EXCLUSIVE MODE')
  events.length = 0
  const mine = await Holdfast.connect({ ...urls, audit: false, timeout: 500 })
  const driver = new ScheduleDriver({ holdfast: mine, postgres, telemetry }, 200)
  await expect.poll(() => events, { timeout: 30_000 }).toContain('sale_slot_failed')
  // What it has begun is cut off.
  await pool.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
  )
  await lock.query('ROLLBACK')
  await lock.end()
  await expect.poll(() => isReady(sale), { timeout: 30_000 }).toBe(true)
  await driver.close()
  await mine.close()
}, 120_000)
