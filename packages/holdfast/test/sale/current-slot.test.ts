import { Holdfast } from 'holdfast'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'

const DAY = 86_400_000

let hf: Holdfast
let pool: pg.Pool
beforeAll(async () => {
  const urls = { redis: await freshRedis(), postgres: await freshDatabase() }
  pool = new pg.Pool({ connectionString: urls.postgres, max: 1 })
  hf = await Holdfast.connect({ ...urls, audit: false })
})
afterAll(async () => {
  await hf.close()
  await pool.end()
})

/** As if slots of a second each had gone before the one that is running, and would come after it, without a gap. */
async function addSlots(schedule: string, past: number, coming: number): Promise<void> {
  const slots = `SELECT l.tenant, l.schedule, l.opened_at, s.terms,
      CASE WHEN n < 0 THEN l.starts_at + n * 1000 ELSE l.ends_at + (n - 1) * 1000 END AS starts_at, l.schedule || '-x' || n AS sale
    FROM holdfast.sale_slots l JOIN holdfast.sales s ON s.tenant = l.tenant AND s.id = l.sale,
      generate_series(-$2::integer, $3::integer) n
    WHERE l.schedule = $1 AND n <> 0`
  await pool.query(
    `WITH slots AS (${slots}), made AS (
       INSERT INTO holdfast.sales (tenant, id, terms, opened_at, ready) SELECT tenant, sale, terms, opened_at, true FROM slots
     )
     INSERT INTO holdfast.sale_slots (tenant, schedule, starts_at, ends_at, sale, version, opened_at)
     SELECT tenant, schedule, starts_at, starts_at + 1000, sale, 1, opened_at FROM slots`,
    [schedule, past, coming],
  )
}

const moveClockBy = (ms: number) =>
  pool.query(`CREATE OR REPLACE FUNCTION holdfast.clock_ms() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint + ${ms} $$`)

it.each([
  { clocks: 'the clocks agree', apartMs: 0, beganMs: 30_000 },
  { clocks: 'the clock of Postgres is behind', apartMs: -120_000, beganMs: 30_000 },
  { clocks: 'the clock of Postgres is ahead', apartMs: 120_000, beganMs: DAY - 60_000 },
])('the sale that runs is told among many short ones: $clocks', async ({ clocks, apartMs, beganMs }) => {
  const schedule = hf.saleSchedule(clocks)
  // It is long, so that it runs for the whole test.
  const offset = (Date.now() - beganMs + DAY) % DAY
  await schedule.start({ every: DAY, offset, ahead: 100, perUser: 1, items: [{ id: 'a' }] })
  await schedule.stop()
  const [running] = await schedule.slots()
  await addSlots(clocks, 200, 200)
  await moveClockBy(apartMs)
  try {
    expect((await schedule.current())?.id).toBe(running?.sale)
    expect((await schedule.next())?.id).toBe(`${clocks}-x1`)
  } finally {
    await moveClockBy(0)
  }
})
