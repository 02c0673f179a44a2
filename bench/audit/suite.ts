/** What audits cost: by themselves, and those who use the servers meanwhile. */
import { createHash } from 'node:crypto'
import { type AuditReport, Holdfast } from 'holdfast'
import pg from 'pg'
import type { Suite } from '../harness/command.js'
import type { Place } from '../harness/contender.js'
import { treeCpuMs } from '../harness/cpu.js'
import { Latencies } from '../harness/latency.js'
import { describeMachine, type Machine } from '../harness/machine.js'
import { seedWallets } from '../harness/seed.js'
import { Servers } from '../harness/servers.js'
import { type Measured, measured, ratio } from '../harness/statistics.js'
import { WorkerProcess } from '../harness/worker-process.js'
import { PLANS, type Plan } from './plan.js'
import { render } from './render.js'

/** One audit of everything with nobody else there. */
export interface Alone {
  readonly wallets: number
  readonly entries: number
  readonly seconds: number
  /** Processor time a wallet. */
  readonly cpuUs: { readonly node: number; readonly redis: number; readonly postgres: number }
  readonly found: number
}

/** An audit of all that Redis has of a sale, by a process that has not read its journal before. */
export interface SaleAlone {
  /** Sales that were in Redis. */
  readonly hot: number
  readonly fields: number
  readonly seconds: number
  /** Processor time a field. */
  readonly cpuUs: Alone['cpuUs']
  readonly found: number
}

/** How audits go on beside the callers: not at all, every five minutes as by default, or without a pause between two. */
export type Company = 'none' | 'usual' | 'constant'

export interface Beside {
  readonly company: Company
  readonly pairsPerSecond: Measured
  readonly p99Ms: Measured
  /** To the same round without audits. */
  readonly ratio: Measured
  /** Processor time an operation, of everybody: callers, Redis, Postgres and the auditor. */
  readonly cpuUs: Measured
  readonly cpuRatio: Measured
  /** Wallets that were audited meanwhile, a second. */
  readonly auditedPerSecond: Measured
  readonly found: number
}

export interface AuditData {
  readonly suite: 'audit'
  readonly commandLine: string
  readonly machine: Machine
  readonly plan: Plan
  readonly first: Alone
  readonly second: Alone
  readonly sale: SaleAlone
  readonly beside: readonly Beside[]
}

const EVERY_MS = { usual: 300_000, constant: 1 }
/** Wallets a page of an audit, and shards that they are spread over: most pages are full. */
const PAGE = 500
const SHARDS = 64
/** Nobody asks for them: any ref does. */
const COLD = {
  tenant: 'cold',
  amount: 1_000,
  idOf: (number: number) => `cold-${number}`,
  refOf: (id: string) => createHash('md5').update(id).digest('hex'),
}
/** Items in one checkout. */
const LINES = 100
const COMPANIES: readonly Company[] = ['none', 'usual', 'constant']

export const runAudit: Suite = async ({ size, commandLine, profileFolder, say, commitDelayMs }) => {
  const plan = PLANS[size]
  say('audit: starting Redis and Postgres')
  const servers = await Servers.start({ commitDelayMs })
  const worker = new WorkerProcess('callers', profileFolder)
  try {
    const place = await servers.allot('audit')
    await worker.ask('open', { contender: 'unaudited', place })
    await worker.ask('seed', { wallets: plan.hotWallets })
    const client = new pg.Client(place.databaseUrl)
    await client.connect()
    say(`audit: seeding ${plan.wallets} wallets`)
    await seedWallets(client, { ...COLD, first: 0, end: plan.fresh, audited: false })
    const first = await auditAlone(place, servers)
    say(`audit: ${first.wallets} journals read in ${first.seconds.toFixed(1)} s`)
    await seedWallets(client, { ...COLD, first: plan.fresh, end: plan.wallets, audited: true })
    const second = await auditAlone(place, servers)
    say(`audit: ${second.wallets} wallets compared in ${second.seconds.toFixed(1)} s`)
    const sale = await auditSale(await servers.allot('audited_sale'), servers, plan.saleItems)
    say(`audit: ${sale.fields} fields of a sale compared in ${sale.seconds.toFixed(1)} s`)
    const beside = await measureBeside({ plan, place, worker, client, servers, say })
    await client.end()
    const data: AuditData = {
      suite: 'audit',
      commandLine,
      machine: describeMachine(),
      plan,
      first,
      second,
      sale,
      beside,
    }
    return { suite: 'audit', failures: failuresOf(data), markdown: render(data), plots: new Map(), data }
  } finally {
    await worker.stop()
    await servers.stop()
  }
}

async function auditAlone(place: Place, servers: Servers): Promise<Alone> {
  const { report, cpuUs } = await auditMetered(place, servers, false)
  const { wallets, entries, durationMs, counts } = report
  return { wallets, entries, seconds: durationMs / 1_000, cpuUs: cpuUs(wallets), found: counts.found }
}

/** Half of the items are sold, a hundred to each buyer. */
async function auditSale(place: Place, servers: Servers, items: number): Promise<SaleAlone> {
  const hf = await Holdfast.connect({ redis: place.redisUrl, postgres: place.databaseUrl, audit: false })
  const sale = hf.sale('audited')
  const ids = Array.from({ length: items }, (_, number) => ({ id: `item-${number}` }))
  await sale.open({ items: ids, perUser: LINES, startsAt: Date.now() - 1_000, endsAt: Date.now() + 3_600_000 })
  const buyers = Math.floor(items / 2 / LINES)
  for (let buyer = 0; buyer < buyers; buyer += 1) {
    const user = `buyer-${buyer}`
    const { code } = await sale.checkout({ user, items: ids.slice(buyer * LINES, (buyer + 1) * LINES), key: user })
    await sale.purchase(code)
  }
  await hf.close()
  const { report, cpuUs } = await auditMetered(place, servers, true)
  // An item each, for each buyer one and one for the key; and when the sale ends.
  const fields = buyers * (LINES + 2) + 1
  const { hot, durationMs, counts } = report
  return { hot, fields, seconds: durationMs / 1_000, cpuUs: cpuUs(fields), found: counts.found }
}

async function auditMetered({ redisUrl, databaseUrl }: Place, servers: Servers, full: boolean) {
  const hf = await Holdfast.connect({ redis: redisUrl, postgres: databaseUrl, audit: false })
  try {
    const meter = () => ({
      node: ownCpuUs(),
      redis: treeCpuMs(servers.redisPid) * 1_000,
      postgres: treeCpuMs(servers.postgresPid) * 1_000,
    })
    const before = meter()
    const report = await hf.audit({ full })
    const after = meter()
    const cpuUs = (shares: number): Alone['cpuUs'] => ({
      node: (after.node - before.node) / shares,
      redis: (after.redis - before.redis) / shares,
      postgres: (after.postgres - before.postgres) / shares,
    })
    return { report, cpuUs }
  } finally {
    await hf.close()
  }
}

function ownCpuUs(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}

interface Track {
  readonly plan: Plan
  readonly place: Place
  readonly worker: WorkerProcess
  readonly client: pg.Client
  readonly servers: Servers
  say(line: string): void
}

/** Round by round through all of them: what disturbs one disturbs all alike. */
async function measureBeside(track: Track): Promise<Beside[]> {
  const { plan, say } = track
  const turns = new Map(COMPANIES.map((company) => [company, [] as Awaited<ReturnType<typeof runTurn>>[]]))
  for (let round = 1; round <= plan.rounds; round += 1) {
    for (const [company, rounds] of turns) rounds.push(await runTurn(track, company, round))
    say(`audit: round ${round} of ${plan.rounds}`)
  }
  const of = (company: Company) => measured((turns.get(company) ?? []).map(({ pairsPerSecond }) => pairsPerSecond))
  const cpuOf = (company: Company) => measured((turns.get(company) ?? []).map(({ cpuUs }) => cpuUs))
  return [...turns].map(([company, rounds]) => ({
    company,
    pairsPerSecond: of(company),
    p99Ms: measured(rounds.map(({ p99Ms }) => p99Ms)),
    ratio: ratio(of(company), of('none')),
    cpuUs: cpuOf(company),
    cpuRatio: ratio(cpuOf(company), cpuOf('none')),
    auditedPerSecond: measured(rounds.map(({ auditedPerSecond }) => auditedPerSecond)),
    found: rounds.reduce((sum, { found }) => sum + found, 0),
  }))
}

async function runTurn({ plan, place, worker, client, servers }: Track, company: Company, round: number) {
  const reports: AuditReport[] = []
  let pages = 0
  // As it is after a while: the shards have been audited at different times.
  await client.query('UPDATE audit_shards SET audited_at = clock_ms() - floor(random() * 300000)::bigint')
  const hf = await Holdfast.connect({
    redis: place.redisUrl,
    postgres: place.databaseUrl,
    telemetry: {
      observe: (_metric, _value, labels) => {
        if (labels?.query === 'auditPage') pages += 1
      },
    },
    audit: company !== 'none' && { every: EVERY_MS[company], onReport: (report) => void reports.push(report) },
  })
  try {
    const cpuMs = () =>
      [worker.pid, servers.redisPid, servers.postgresPid].reduce((sum, pid) => sum + treeCpuMs(pid), 0) +
      ownCpuUs() / 1_000
    const before = cpuMs()
    const from = performance.now()
    const { callers, hotWallets, warmUpMs, measureMs } = plan
    const turn = { callers, first: 0, wallets: hotWallets, warmUpMs, measureMs, name: `${company}-${round}` }
    const result = await worker.ask('run', turn)
    const seconds = (performance.now() - from) / 1_000
    return {
      cpuUs: ((cpuMs() - before) * 1_000) / (result.holds + result.settles),
      pairsPerSecond: ((result.measuredOperations / 2) * 1_000) / result.measuredMs,
      p99Ms: new Latencies(result.latencyCounts).percentile(99),
      auditedPerSecond: (pages * Math.min(PAGE, plan.wallets / SHARDS)) / seconds,
      found: reports.reduce((sum, { counts }) => sum + counts.found, 0),
    }
  } finally {
    await hf.close()
  }
}

/** An audit that looks at nothing is quick, and one that finds what is not there is wrong. */
export function failuresOf({
  plan,
  first,
  second,
  sale,
  beside,
}: Pick<AuditData, 'plan' | 'first' | 'second' | 'sale' | 'beside'>): string[] {
  const failures: string[] = []
  const fresh = plan.fresh + plan.hotWallets
  const all = plan.wallets + plan.hotWallets
  if (first.wallets !== fresh) failures.push(`audit: expected ${fresh} wallets to be audited, got ${first.wallets}`)
  if (first.entries < fresh) failures.push(`audit: expected at least ${fresh} entries to be read, got ${first.entries}`)
  if (second.wallets !== all) failures.push(`audit: expected ${all} wallets to be audited, got ${second.wallets}`)
  if (sale.hot !== 1) failures.push(`audit: expected one sale in Redis, got ${sale.hot}`)
  const found = first.found + second.found + sale.found + beside.reduce((sum, one) => sum + one.found, 0)
  if (found > 0) failures.push(`audit: expected no findings, got ${found}`)
  return failures
}
