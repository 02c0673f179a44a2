/** What more of everything costs: wallets in Postgres and in Redis, and open holds in one wallet. */
import { Holdfast } from 'holdfast'
import pg from 'pg'
import { Keys } from '../../packages/holdfast/src/redis/index.js'
import type { Suite } from '../harness/command.js'
import { FUNDS, HOLD_AMOUNT, HOLD_TTL_MS, type Place } from '../harness/contender.js'
import { treeCpuMs } from '../harness/cpu.js'
import { Latencies } from '../harness/latency.js'
import { describeMachine, type Machine } from '../harness/machine.js'
import { seedWallets } from '../harness/seed.js'
import { Servers } from '../harness/servers.js'
import { type Measured, measured, ratio } from '../harness/statistics.js'
import { WorkerProcess } from '../harness/worker-process.js'
import { PLANS, type Plan } from './plan.js'
import { render } from './render.js'

export interface Cell {
  readonly axis: 'wallets' | 'holds'
  readonly title: string
  readonly pairsPerSecond: Measured
  readonly p99Ms: Measured
  /** Processor time an operation: callers and engine, Redis, and Postgres. */
  readonly cpuUs: Measured
  /** To the first cell of its axis, round by round. */
  readonly ratio: Measured
  readonly cpuRatio: Measured
}

/** Every wallet of an installation brought into Redis. */
export interface Filling {
  readonly wallets: number
  readonly loadedPerSecond: number
  readonly redisBytesPerWallet: number
}

export interface GrowthData {
  readonly suite: 'growth'
  readonly commandLine: string
  readonly machine: Machine
  readonly plan: Plan
  readonly fillings: readonly Filling[]
  readonly cells: readonly Cell[]
}

interface Contest {
  readonly axis: Cell['axis']
  readonly title: string
  readonly worker: WorkerProcess
  /** Wallets are picked from these numbers. */
  readonly first: number
  readonly wallets: number
}

const HOLDS_AT_ONCE = 64
const number = (value: number): string => value.toLocaleString('en')

export const runGrowth: Suite = async ({ size, commandLine, profileFolder, say, commitDelayMs }) => {
  const plan = PLANS[size]
  say('growth: starting Redis and Postgres')
  const servers = await Servers.start({ commitDelayMs })
  const workers: WorkerProcess[] = []
  try {
    const contests: Contest[] = []
    const fillings: Filling[] = []
    for (const wallets of plan.wallets) {
      const place = await servers.allot(`wallets_${wallets}`)
      const worker = new WorkerProcess(`callers on ${wallets} wallets`, profileFolder)
      workers.push(worker)
      await worker.ask('open', { contender: 'unaudited', place })
      say(`growth: seeding ${number(wallets)} wallets, and loading them into Redis`)
      fillings.push(await fill(servers, place, wallets))
      const use = { axis: 'wallets', worker, first: 0 } as const
      const some = Math.min(plan.inUse, wallets)
      contests.push({ ...use, wallets: some, title: `${number(some)} of ${number(wallets)} in use` })
      if (some < wallets) contests.push({ ...use, wallets, title: `all of ${number(wallets)} in use` })
      if (wallets !== plan.wallets[0]) continue
      for (const [index, holds] of plan.openHolds.entries()) {
        await crowd(place, wallets + index, holds)
        const title = holds === 1 ? '1 open hold' : `${number(holds)} open holds`
        contests.push({ axis: 'holds', worker, first: wallets + index, wallets: 1, title })
      }
    }
    const cells = await play(plan, contests, servers, say)
    const data: GrowthData = { suite: 'growth', commandLine, machine: describeMachine(), plan, fillings, cells }
    return { suite: 'growth', failures: failuresOf(data), markdown: render(data), plots: new Map(), data }
  } finally {
    await Promise.all(workers.map((worker) => worker.stop()))
    await servers.stop()
  }
}

async function fill(servers: Servers, place: Place, wallets: number): Promise<Filling> {
  const client = new pg.Client(place.databaseUrl)
  await client.connect()
  const { rows } = await client.query<{ secret: Buffer; shards: number }>(
    'SELECT secret, shards FROM holdfast.settings',
  )
  const { secret, shards } = rows[0] as (typeof rows)[0]
  const keys = new Keys({ tenant: 'default', secret, shards })
  const idOf = (number: number) => `wallet-${number}`
  const refOf = (id: string) => keys.ref(id)
  await seedWallets(client, { first: 0, end: wallets, tenant: 'default', amount: FUNDS, audited: true, idOf, refOf })
  // As a server has it that runs for a while: what was written in one go is on disk, and vacuumed.
  await client.query('VACUUM ANALYZE')
  await client.query('CHECKPOINT')
  await client.end()
  const bytes = async () => Number(/used_memory:(\d+)/.exec(await servers.admin.info('memory'))?.[1])
  const before = await bytes()
  const hf = await Holdfast.connect({ redis: place.redisUrl, postgres: place.databaseUrl, audit: false })
  try {
    const { loaded, durationMs } = await hf.rebuild({ all: true })
    return {
      wallets: loaded,
      loadedPerSecond: (loaded * 1_000) / durationMs,
      redisBytesPerWallet: ((await bytes()) - before) / loaded,
    }
  } finally {
    await hf.close()
  }
}

/** A wallet with so many open holds. */
async function crowd({ redisUrl, databaseUrl }: Place, wallet: number, holds: number): Promise<void> {
  const hf = await Holdfast.connect({ redis: redisUrl, postgres: databaseUrl, audit: false })
  try {
    const crowded = hf.wallet(`wallet-${wallet}`)
    await crowded.open({ currency: 'usd' })
    await crowded.credit(FUNDS, { key: 'seed' })
    let next = 0
    const holder = async () => {
      for (let hold = next++; hold < holds; hold = next++)
        await crowded.hold(HOLD_AMOUNT, { key: `open-${hold}`, ttl: HOLD_TTL_MS })
    }
    await Promise.all(Array.from({ length: HOLDS_AT_ONCE }, holder))
  } finally {
    await hf.close()
  }
}

/** Round by round through all of them: what disturbs one disturbs all alike. */
async function play(
  plan: Plan,
  contests: readonly Contest[],
  servers: Servers,
  say: (line: string) => void,
): Promise<Cell[]> {
  const turns = new Map(contests.map((contest) => [contest, [] as Awaited<ReturnType<typeof runTurn>>[]]))
  for (const contest of contests) await runTurn({ ...plan, measureMs: plan.preludeMs }, contest, servers, 0)
  for (let round = 1; round <= plan.rounds; round += 1) {
    const line: string[] = []
    for (const [contest, rounds] of turns) {
      const turn = await runTurn(plan, contest, servers, round)
      rounds.push(turn)
      line.push(`${contest.title} ${number(Math.round(turn.pairsPerSecond))}`)
    }
    say(`growth: round ${round} of ${plan.rounds}, pairs/s: ${line.join(' · ')}`)
  }
  const pairsOf = (contest: Contest) => measured((turns.get(contest) ?? []).map(({ pairsPerSecond }) => pairsPerSecond))
  const cpuOf = (contest: Contest) => measured((turns.get(contest) ?? []).map(({ cpuUs }) => cpuUs))
  return contests.map((contest) => {
    const first = contests.find(({ axis }) => axis === contest.axis) as Contest
    return {
      axis: contest.axis,
      title: contest.title,
      pairsPerSecond: pairsOf(contest),
      p99Ms: measured((turns.get(contest) ?? []).map(({ p99Ms }) => p99Ms)),
      cpuUs: cpuOf(contest),
      ratio: ratio(pairsOf(contest), pairsOf(first)),
      cpuRatio: ratio(cpuOf(contest), cpuOf(first)),
    }
  })
}

async function runTurn(plan: Plan, { axis, worker, first, wallets }: Contest, servers: Servers, round: number) {
  const cpuMs = () => [worker.pid, servers.redisPid, servers.postgresPid].reduce((sum, pid) => sum + treeCpuMs(pid), 0)
  const before = cpuMs()
  const { callers, warmUpMs, measureMs } = plan
  const name = `${axis}-${first}-${wallets}-${round}`
  const result = await worker.ask('run', { callers, first, wallets, warmUpMs, measureMs, name })
  return {
    pairsPerSecond: ((result.measuredOperations / 2) * 1_000) / result.measuredMs,
    p99Ms: new Latencies(result.latencyCounts).percentile(99),
    cpuUs: ((cpuMs() - before) * 1_000) / (result.holds + result.settles),
  }
}

/** Few wallets are quick. */
export function failuresOf({ plan, fillings }: Pick<GrowthData, 'plan' | 'fillings'>): string[] {
  return plan.wallets.flatMap((wallets, index) => {
    const loaded = fillings[index]?.wallets
    return loaded === wallets ? [] : [`growth: expected ${wallets} wallets to be loaded into Redis, got ${loaded}`]
  })
}
