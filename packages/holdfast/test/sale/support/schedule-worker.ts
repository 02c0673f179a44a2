/**
 * A process that opens the slots of a schedule. Its clock may be wrong, and it may end itself before a statement to Postgres, or when that
 * has been answered.
 */
import pg from 'pg'
import { Holdfast, type ScheduleOptions } from '../../../src/index.js'

export interface WorkerOrder {
  readonly redis: string
  readonly postgres: string
  readonly schedule: string
  readonly options: Omit<ScheduleOptions, 'items'>
  /** How its items begin: each process has its own. */
  readonly name: string
  readonly items: number
  /** How far ahead its clock is, ms. */
  readonly aheadMs?: number
  readonly dies?: { readonly when: 'before' | 'after'; readonly statement: string }
}

const order = JSON.parse(process.argv[2] as string) as WorkerOrder
const { redis, postgres, schedule, options, name, items, aheadMs = 0, dies } = order

const [dateNow, timeOrigin] = [Date.now, performance.timeOrigin]
Date.now = () => dateNow() + aheadMs
Object.defineProperty(performance, 'timeOrigin', { value: timeOrigin + aheadMs })

const die = () => process.kill(process.pid, 'SIGKILL')
const query = pg.Client.prototype.query as (...given: unknown[]) => unknown
pg.Client.prototype.query = function (this: pg.Client, ...given: unknown[]) {
  const isIt = dies && (given[0] as { name?: string })?.name === `holdfast_${dies.statement}`
  if (isIt && dies.when === 'before') return new Promise(die)
  const answer = query.apply(this, given) as Promise<unknown>
  return isIt ? answer.then(() => new Promise(die)) : answer
} as typeof pg.Client.prototype.query

const hf = await Holdfast.connect({ redis, postgres, audit: false })
await hf.saleSchedule(schedule).start({
  ...options,
  timeout: 60_000,
  items: ({ sale }) => Array.from({ length: items }, (_, n) => ({ id: `${name}-${sale}-${n}` })),
})
process.send?.('started')
setInterval(() => {}, 1_000)
