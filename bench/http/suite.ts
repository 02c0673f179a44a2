/** What HTTP adds to the engine: `POST …/holds` and `…/settle`, against the engine called directly and a bare Fastify route. */
import type { Suite } from '../harness/command.js'
import type { Place } from '../harness/contender.js'
import { treeCpuMs } from '../harness/cpu.js'
import { Latencies } from '../harness/latency.js'
import { describeMachine, type Machine } from '../harness/machine.js'
import { Servers } from '../harness/servers.js'
import { type Measured, measured } from '../harness/statistics.js'
import { WorkerProcess } from '../harness/worker-process.js'
import { HoldfastBooks } from '../wallets/contenders/holdfast.js'
import { load, type Until } from './load.js'
import { PLANS, type Plan } from './plan.js'
import { createKey, type Program, startBareServer, startHoldfastServer } from './programs.js'
import { render } from './render.js'

type Way = 'server' | 'bare' | 'engine'
const WAYS: readonly Way[] = ['server', 'bare', 'engine']

interface Sample {
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Processor time of this one process, an operation. */
  readonly cpuUs: number
}

export interface WayResult {
  readonly perSecond: Measured
  readonly p50Ms: Measured
  readonly p99Ms: Measured
  readonly cpuUs: Measured
}

export interface ScenarioResult {
  readonly connections: number
  readonly ways: Readonly<Record<Way, WayResult>>
  /** Processor time of the server, as a multiple of a bare route and the engine's work together. */
  readonly cpuRatio: Measured
  /** Requests a second of the server, as a part of what each of the two does. */
  readonly speedToEngine: Measured
  readonly speedToBare: Measured
}

export interface HttpData {
  readonly suite: 'http'
  readonly commandLine: string
  readonly machine: Machine
  readonly plan: Plan
  readonly scenarios: readonly ScenarioResult[]
  /** Of the server: operations that were acknowledged, and entries that its journal has of them. */
  readonly acknowledged: number
  readonly entries: number
  readonly failed: number
}

export const runHttp: Suite = async ({ size, commandLine, profileFolder, say, commitDelayMs }) => {
  const plan = PLANS[size]
  say('http: starting Redis and Postgres')
  const servers = await Servers.start({ commitDelayMs })
  const engine = new WorkerProcess('engine', profileFolder)
  const programs: Program[] = []
  try {
    const place = await servers.allot('http')
    say(`http: filling ${plan.wallets} wallets, twice`)
    await seed(place, plan.wallets)
    await engine.ask('open', { contender: 'ledger', place: await servers.allot('engine') })
    await engine.ask('seed', { wallets: plan.wallets })
    const server = await startHoldfastServer(place, profileFolder)
    programs.push(server)
    const bare = await startBareServer(profileFolder)
    programs.push(bare)
    const stage = new Stage(plan, { server, bare }, engine, await createKey(place))
    say(`http: warming up with ${plan.warmUpRequests} requests`)
    await stage.warmUp()
    const scenarios: ScenarioResult[] = []
    for (const connections of plan.connections) scenarios.push(await play(stage, plan, connections, say))
    const books = new HoldfastBooks(place)
    // What seeding made is in it too: an entry a wallet.
    const entries = (await books.tally()).entries - plan.wallets
    await books.close()
    const { acknowledged, failed } = stage
    const machine = describeMachine()
    const data: HttpData = { suite: 'http', commandLine, machine, plan, scenarios, acknowledged, entries, failed }
    return { suite: 'http', failures: failuresOf(data), markdown: render(data), plots: new Map(), data }
  } finally {
    await Promise.all([engine.stop(), ...programs.map((program) => program.stop())])
    await servers.stop()
  }
}

async function seed(place: Place, wallets: number): Promise<void> {
  const seeder = new WorkerProcess('seeder', undefined)
  try {
    await seeder.ask('open', { contender: 'ledger', place })
    await seeder.ask('seed', { wallets })
  } finally {
    await seeder.stop()
  }
}

class Stage {
  acknowledged = 0
  failed = 0
  #turns = 0

  constructor(
    readonly plan: Plan,
    readonly programs: Readonly<Record<'server' | 'bare', Program>>,
    readonly engine: WorkerProcess,
    readonly apiKey: string,
  ) {}

  async warmUp(): Promise<void> {
    const { warmUpRequests: amount } = this.plan
    const connections = Math.max(...this.plan.connections)
    for (const way of ['server', 'bare'] as const) await this.#ask(way, connections, `w-${way}`, { amount })
    await this.#callEngine(connections, 'w-engine')
  }

  async turn(way: Way, connections: number): Promise<Sample> {
    this.#turns += 1
    const name = `t${this.#turns}`
    return way === 'engine' ? this.#callEngine(connections, name) : this.#ask(way, connections, name)
  }

  async #ask(
    way: 'server' | 'bare',
    connections: number,
    name: string,
    until: Until = { duration: this.plan.measureSeconds },
  ): Promise<Sample> {
    const { url, pid } = this.programs[way]
    const { wallets } = this.plan
    const asked = { url, apiKey: this.apiKey, connections, wallets, name, until }
    const before = treeCpuMs(pid)
    const { requests, requestsPerSecond: perSecond, p50Ms, p99Ms, failed } = await load(asked)
    const cpuUs = ((treeCpuMs(pid) - before) * 1_000) / requests
    this.failed += failed
    if (way === 'server') this.acknowledged += requests - failed
    return { perSecond, p50Ms, p99Ms, cpuUs }
  }

  async #callEngine(callers: number, name: string): Promise<Sample> {
    const { wallets, warmUpMs, measureSeconds } = this.plan
    const turn = { callers, first: 0, wallets, warmUpMs, measureMs: measureSeconds * 1_000, name }
    const before = treeCpuMs(this.engine.pid)
    const { holds, settles, measuredOperations, measuredMs, latencyCounts } = await this.engine.ask('run', turn)
    const cpuUs = ((treeCpuMs(this.engine.pid) - before) * 1_000) / (holds + settles)
    const latencies = new Latencies(latencyCounts)
    const perSecond = (measuredOperations * 1_000) / measuredMs
    return { perSecond, p50Ms: latencies.percentile(50), p99Ms: latencies.percentile(99), cpuUs }
  }
}

/** One after the other, round by round: what disturbs one disturbs all. What answers is warmed up before. */
async function play(
  stage: Stage,
  plan: Plan,
  connections: number,
  say: (line: string) => void,
): Promise<ScenarioResult> {
  const samples: Record<Way, Sample[]> = { server: [], bare: [], engine: [] }
  for (let round = 1; round <= plan.rounds; round += 1) {
    const order = round % 2 === 0 ? WAYS : [...WAYS].reverse()
    for (const way of order) samples[way].push(await stage.turn(way, connections))
    const line = WAYS.map((way) => `${way} ${samples[way].at(-1)?.cpuUs.toFixed(1) ?? '–'}`).join(', ')
    say(`http: ${connections} connections, round ${round} of ${plan.rounds}, µs of processor time: ${line}`)
  }
  const rounds = samples.server.map((server, round) => ({
    server,
    bare: samples.bare[round] as Sample,
    engine: samples.engine[round] as Sample,
  }))
  return {
    connections,
    ways: { server: resultOf(samples.server), bare: resultOf(samples.bare), engine: resultOf(samples.engine) },
    cpuRatio: measured(rounds.map(({ server, bare, engine }) => server.cpuUs / (bare.cpuUs + engine.cpuUs))),
    speedToEngine: measured(rounds.map(({ server, engine }) => server.perSecond / engine.perSecond)),
    speedToBare: measured(rounds.map(({ server, bare }) => server.perSecond / bare.perSecond)),
  }
}

const resultOf = (samples: readonly Sample[]): WayResult => ({
  perSecond: measured(samples.map(({ perSecond }) => perSecond)),
  p50Ms: measured(samples.map(({ p50Ms }) => p50Ms)),
  p99Ms: measured(samples.map(({ p99Ms }) => p99Ms)),
  cpuUs: measured(samples.map(({ cpuUs }) => cpuUs)),
})

/** Requests that were cut when a turn ended may have been done: there may be more entries than answers, one a connection and turn. */
function failuresOf({ failed, acknowledged, entries }: HttpData): string[] {
  return [
    ...(failed > 0 ? [`http: ${failed} requests failed`] : []),
    ...(entries < acknowledged ? [`http: ${acknowledged} acknowledged, ${entries} in the journal`] : []),
  ]
}
