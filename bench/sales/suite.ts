/** Purchases a second from many callers, against one Postgres transaction a purchase; and what more items and more buckets cost. */
import { Holdfast } from 'holdfast'
import { Redis } from 'ioredis'
import pg from 'pg'
import type { Suite } from '../harness/command.js'
import type { Place } from '../harness/contender.js'
import { treeCpuMs } from '../harness/cpu.js'
import { Latencies } from '../harness/latency.js'
import { describeMachine, type Machine } from '../harness/machine.js'
import { Servers } from '../harness/servers.js'
import { type Measured, measured, ratio } from '../harness/statistics.js'
import { WorkerProcess } from '../harness/worker-process.js'
import { SALE, SOLD } from './contenders.js'
import { PLANS, type Plan } from './plan.js'
import { render } from './render.js'

export interface Cell {
  readonly title: string
  readonly way: 'sale' | 'rowlock'
  readonly items: number
  /** Of a sale; transactions a purchase where that is the way. */
  readonly parts: number
  readonly openMs: number
  readonly purchasesPerSecond: Measured
  /** To one transaction a purchase, with no checkout before it, round by round. */
  readonly ratio: Measured
  /** To one transaction a step, of which a purchase has two here as well. */
  readonly ratioToSteps: Measured
  /** To the first sale, round by round. */
  readonly growth: Measured
  /** Of a step: a checkout, or a purchase. */
  readonly p99Ms: Measured
  /** Processor time a purchase, its checkout included. */
  readonly cpuUs: { readonly node: Measured; readonly redis: Measured; readonly postgres: Measured }
  readonly acknowledged: number
  readonly sold: number
  readonly loading: Loading | null
}

/** The sale as it is after all that, taken into an empty Redis. */
export interface Loading {
  /** Entries in its journal. */
  readonly entries: number
  /** The first checkout, which finds nothing: everything is read, and noted. Then a second time: what was noted is read. */
  readonly firstMs: number
  readonly againMs: number
  /** The longest that Redis was kept by one call meanwhile. */
  readonly slowestCallMs: number
  readonly redisBytes: number
  readonly takenItems: number
}

export interface SalesData {
  readonly suite: 'sales'
  readonly commandLine: string
  readonly machine: Machine
  readonly plan: Plan
  readonly cells: readonly Cell[]
}

interface Contest {
  readonly way: Cell['way']
  readonly title: string
  readonly items: number
  readonly parts: number
  readonly worker: WorkerProcess
  readonly place: Place
  readonly openMs: number
  readonly rounds: Awaited<ReturnType<typeof runTurn>>[]
  acknowledged: number
}

const number = (value: number): string => value.toLocaleString('en')

export const runSales: Suite = async ({ size, commandLine, profileFolder, say, commitDelayMs }) => {
  const plan = PLANS[size]
  say('sales: starting Redis and Postgres')
  const servers = await Servers.start({ commitDelayMs })
  const contests: Contest[] = []
  try {
    for (const [way, items, parts] of waysOf(plan)) {
      const title = titleOf(way, items, parts)
      say(`sales: opening ${title}`)
      const place = await servers.allot(`${way}_${items}_${parts}`)
      const worker = new WorkerProcess(title, profileFolder)
      const opening = { way, title, items, parts, worker, place, rounds: [], acknowledged: 0, openMs: Number.NaN }
      contests.push(opening)
      await worker.ask('open', { contender: `${way}-${parts}`, place })
      const from = performance.now()
      await worker.ask('seed', { wallets: items })
      opening.openMs = performance.now() - from
    }
    await play(plan, contests, servers, say)
    const cells: Cell[] = []
    for (const contest of contests) cells.push(await conclude(contest, contests, servers, say))
    const data: SalesData = { suite: 'sales', commandLine, machine: describeMachine(), plan, cells }
    return { suite: 'sales', failures: failuresOf(data), markdown: render(data), plots: new Map(), data }
  } finally {
    await Promise.all(contests.map(({ worker }) => worker.stop()))
    await servers.stop()
  }
}

function waysOf({ items, buckets }: Plan): [way: Cell['way'], items: number, parts: number][] {
  const few = items[0] as number
  return [
    ['rowlock', few, 1],
    ['rowlock', few, 2],
    ...items.map((count): [Cell['way'], number, number] => ['sale', count, 1]),
    ...buckets.slice(1).map((parts): [Cell['way'], number, number] => ['sale', few, parts]),
  ]
}

function titleOf(way: Cell['way'], items: number, parts: number): string {
  const of = `${number(items)} items`
  if (way === 'sale') return parts === 1 ? `Holdfast, ${of}` : `Holdfast, ${of}, ${parts} buckets`
  return parts === 1 ? `Postgres, one transaction a purchase, ${of}` : `Postgres, one transaction a step, ${of}`
}

/** Round by round through all of them, each round beginning with another: what disturbs one disturbs all alike. */
async function play(plan: Plan, contests: readonly Contest[], servers: Servers, say: (line: string) => void) {
  for (const contest of contests) await runTurn({ ...plan, measureMs: plan.preludeMs }, contest, servers, 0)
  for (let round = 1; round <= plan.rounds; round += 1) {
    const line: string[] = []
    for (let n = 0; n < contests.length; n += 1) {
      const contest = contests[(n + round) % contests.length] as Contest
      const turn = await runTurn(plan, contest, servers, round)
      contest.rounds.push(turn)
      line.push(`${contest.title} ${number(Math.round(turn.purchasesPerSecond))}`)
    }
    say(`sales: round ${round} of ${plan.rounds}, purchases/s: ${line.sort().join(' · ')}`)
  }
}

async function runTurn(plan: Plan, contest: Contest, servers: Servers, round: number) {
  const { worker, items } = contest
  const pids = { node: worker.pid, redis: servers.redisPid, postgres: servers.postgresPid }
  const meter = (who: keyof typeof pids) => treeCpuMs(pids[who])
  const before = { node: meter('node'), redis: meter('redis'), postgres: meter('postgres') }
  const { callers, warmUpMs, measureMs } = plan
  const turn = { callers, first: 0, wallets: items, warmUpMs, measureMs, name: `round-${round}` }
  const result = await worker.ask('run', turn)
  contest.acknowledged += result.settles
  const cost = (who: keyof typeof pids) => ((meter(who) - before[who]) * 1_000) / result.settles
  return {
    purchasesPerSecond: ((result.measuredOperations / 2) * 1_000) / result.measuredMs,
    p99Ms: new Latencies(result.latencyCounts).percentile(99),
    cpuUs: { node: cost('node'), redis: cost('redis'), postgres: cost('postgres') },
  }
}

async function conclude(
  contest: Contest,
  contests: readonly Contest[],
  servers: Servers,
  say: (line: string) => void,
): Promise<Cell> {
  const { way, title, items, parts, openMs, place, worker, rounds, acknowledged } = contest
  const perSecond = (one: Contest) => measured(one.rounds.map(({ purchasesPerSecond }) => purchasesPerSecond))
  const cpuOf = (who: 'node' | 'redis' | 'postgres') => measured(rounds.map(({ cpuUs }) => cpuUs[who]))
  const first = (way: Cell['way'], parts = 1) =>
    perSecond(contests.find((one) => one.way === way && one.parts === parts) as Contest)
  await worker.stop()
  const sold = await soldBy(place, way)
  if (way === 'sale') say(`sales: loading ${title} anew`)
  return {
    title,
    way,
    items,
    parts,
    openMs,
    purchasesPerSecond: perSecond(contest),
    ratio: ratio(perSecond(contest), first('rowlock')),
    ratioToSteps: ratio(perSecond(contest), first('rowlock', 2)),
    growth: ratio(perSecond(contest), first('sale')),
    p99Ms: measured(rounds.map(({ p99Ms }) => p99Ms)),
    cpuUs: { node: cpuOf('node'), redis: cpuOf('redis'), postgres: cpuOf('postgres') },
    acknowledged,
    sold,
    loading: way === 'sale' ? await load(place, servers) : null,
  }
}

async function soldBy({ databaseUrl }: Place, way: Cell['way']): Promise<number> {
  const client = new pg.Client(databaseUrl)
  await client.connect()
  const { rows } = await client.query<{ sold: string }>(SOLD[way])
  await client.end()
  return Number(rows[0]?.sold)
}

async function load({ redisUrl, databaseUrl }: Place, { admin }: Servers): Promise<Loading> {
  const hf = await Holdfast.connect({ redis: redisUrl, postgres: databaseUrl, audit: false })
  const redis = new Redis(redisUrl)
  const client = new pg.Client(databaseUrl)
  try {
    await client.connect()
    const { rows } = await client.query<{ entries: string }>('SELECT sum(seq) AS entries FROM holdfast.wallets')
    await admin.config('SET', 'slowlog-log-slower-than', '0')
    const check = async (user: string) => {
      await redis.flushdb()
      await admin.slowlog('RESET')
      const from = performance.now()
      await hf.sale(SALE).checkout({ user, items: [{ id: 'item-0' }], key: user, timeout: 60_000 })
      return performance.now() - from
    }
    const firstMs = await check('after-the-flood')
    const againMs = await check('after-another')
    const calls = (await admin.slowlog('GET', 200)) as [number, number, number][]
    await admin.config('SET', 'slowlog-log-slower-than', '10000')
    let redisBytes = 0
    let takenItems = 0
    for (const key of await redis.keys('*:stock:*')) {
      redisBytes += (await redis.memory('USAGE', key, 'SAMPLES', 100)) as number
      const fields = await redis.hkeys(key)
      takenItems += fields.filter((field) => field.startsWith('i:')).length
    }
    const slowestCallMs = Math.max(...calls.map(([, , us]) => us)) / 1_000
    return { entries: Number(rows[0]?.entries), firstMs, againMs, slowestCallMs, redisBytes, takenItems }
  } finally {
    redis.disconnect()
    await client.end()
    await hf.close()
  }
}

/** What was not sold, or sold more often than anybody was told, is not fast. */
export function failuresOf({ cells }: Pick<SalesData, 'cells'>): string[] {
  return cells.flatMap(({ title, acknowledged, sold }) => {
    if (acknowledged === 0) return [`${title}: nothing was bought`]
    return acknowledged === sold ? [] : [`${title}: ${acknowledged} purchases were acknowledged, ${sold} are on record`]
  })
}
