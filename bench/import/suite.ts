/** How long it takes to take a stripe402 store into wallets, and how much memory: by the command, as an operator runs it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Suite } from '../harness/command.js'
import { treeCpuMs } from '../harness/cpu.js'
import { describeMachine, type Machine } from '../harness/machine.js'
import { Servers } from '../harness/servers.js'
import { fillPostgres, fillRedis } from './dataset.js'
import { PLANS, type Plan } from './plan.js'
import { render } from './render.js'

export interface Row {
  readonly source: 'Redis' | 'Postgres'
  readonly command: string
  readonly code: number
  readonly seconds: number
  readonly clients: number
  readonly transactions: number
  readonly leftOut: number
  readonly peakMb: number
  /** Processor time: the command, and what it asked of both servers, where one of them is the source as well. */
  readonly cpuSeconds: number
  readonly serversCpuSeconds: number
}

export interface ImportData {
  readonly suite: 'import'
  readonly commandLine: string
  readonly machine: Machine
  readonly plan: Plan
  readonly rows: readonly Row[]
}

/** From the bundle in node_modules/.cache/holdfast, which the harness runs as. */
const CLI = fileURLToPath(new URL('../../../packages/server/dist/cli.js', import.meta.url))
const LOOK_MS = 100

const COMMANDS = [
  'stripe402 verify',
  'stripe402 import --dry-run',
  'stripe402 import',
  'stripe402 import, again',
] as const

export const runImport: Suite = async ({ size, commandLine, say, commitDelayMs }) => {
  const plan = PLANS[size]
  say('import: starting Redis and Postgres')
  const servers = await Servers.start({ commitDelayMs })
  try {
    const rows: Row[] = []
    for (const source of ['Redis', 'Postgres'] as const) {
      const from = await servers.allot(`source_${source.toLowerCase()}`)
      const to = await servers.allot(`target_${source.toLowerCase()}`)
      say(`import: writing ${plan.clients} clients with ${plan.transactions} transactions each to ${source}`)
      if (source === 'Redis') await fillRedis(from.redisUrl, plan)
      else await fillPostgres(from.databaseUrl, plan)
      const env = {
        REDIS_URL: to.redisUrl,
        DATABASE_URL: to.databaseUrl,
        [source === 'Redis' ? 'STRIPE402_REDIS_URL' : 'STRIPE402_DATABASE_URL']:
          source === 'Redis' ? from.redisUrl : from.databaseUrl,
      }
      await run(servers, ['migrate'], env)
      for (const command of COMMANDS) {
        const row = await run(servers, command.replace(', again', '').split(' '), env)
        rows.push({ source, command, ...row })
        say(`import: ${command} from ${source}: ${row.seconds.toFixed(1)} s, ${Math.round(row.peakMb)} MB`)
      }
    }
    const data: ImportData = { suite: 'import', commandLine, machine: describeMachine(), plan, rows }
    return { suite: 'import', failures: failuresOf(data), markdown: render(data), plots: new Map(), data }
  } finally {
    await servers.stop()
  }
}

async function run(
  servers: Servers,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<Omit<Row, 'source' | 'command'>> {
  const serversCpuMs = () => treeCpuMs(servers.redisPid) + treeCpuMs(servers.postgresPid)
  const [startedAt, cpuBefore] = [performance.now(), serversCpuMs()]
  const child = spawn(process.execPath, [CLI, ...args, '--json'], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  let output = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
  })
  let [peakMb, cpuMs] = [0, 0]
  const look = setInterval(() => {
    peakMb = Math.max(peakMb, peakMbOf(child.pid as number))
    cpuMs = Math.max(cpuMs, treeCpuMs(child.pid as number) || 0)
  }, LOOK_MS)
  const [code] = (await once(child, 'close')) as [number]
  clearInterval(look)
  const { clients = 0, transactions = 0, leftOut = 0 } = JSON.parse(output) as Partial<Row>
  return {
    code,
    seconds: (performance.now() - startedAt) / 1_000,
    clients,
    transactions,
    leftOut,
    peakMb,
    cpuSeconds: cpuMs / 1_000,
    serversCpuSeconds: (serversCpuMs() - cpuBefore) / 1_000,
  }
}

/** The most that a process has had in memory; 0 where there is no /proc, or no process any more. */
function peakMbOf(pid: number): number {
  try {
    return Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1_024
  } catch {
    return 0
  }
}

/** Quick is nothing if something stayed behind. */
export function failuresOf({ plan, rows }: Pick<ImportData, 'plan' | 'rows'>): string[] {
  const transactions = plan.clients * plan.transactions
  return rows
    .filter((row) => row.code !== 0 || row.clients !== plan.clients || row.transactions !== transactions)
    .map(
      ({ source, command, code, ...row }) =>
        `import: ${command} from ${source}: expected ${plan.clients} clients with ${transactions} transactions, got ${row.clients} with ${row.transactions} and exit code ${code}`,
    )
}
