/** The two programs that are asked over HTTP, each in a process of its own. */
import { type ChildProcess, execFile, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Place } from '../harness/contender.js'
import { BenchError } from '../harness/error.js'

const execute = promisify(execFile)
/** From the bundle in node_modules/.cache/holdfast, which the harness runs as. */
const CLI = fileURLToPath(new URL('../../../packages/server/dist/cli.js', import.meta.url))

export interface Program {
  readonly pid: number
  readonly url: string
  stop(): Promise<void>
}

export async function startBareServer(profileFolder: string | undefined): Promise<Program> {
  const child = fork(process.argv[1] as string, ['bare'], {
    execArgv: [...process.execArgv, ...profiling(profileFolder)],
  })
  const [{ url }] = (await once(child, 'message')) as [{ url: string }]
  return program(child, url, () => child.disconnect())
}

/** As an operator starts it, with nothing tuned but the limits of a key: those would be what is measured. */
export async function startHoldfastServer(place: Place, profileFolder: string | undefined): Promise<Program> {
  const env = { ...process.env, REDIS_URL: place.redisUrl, DATABASE_URL: place.databaseUrl }
  const args = [...profiling(profileFolder), CLI, 'serve', '--port', '0', '--json', '--key-rate', '1000000']
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'ignore'] })
  const ended = once(child, 'exit').then(() => {
    throw new BenchError('holdfast serve ended before it was ready')
  })
  ended.catch(() => {})
  const [line] = (await Promise.race([once(child.stdout, 'data'), ended])) as [Buffer]
  return program(child, JSON.parse(String(line)).url, () => child.kill('SIGTERM'))
}

/** An API key that may do everything. */
export async function createKey({ databaseUrl }: Place): Promise<string> {
  const env = { ...process.env, DATABASE_URL: databaseUrl }
  const { stdout } = await execute(process.execPath, [CLI, 'keys', 'create', '--json'], { env })
  return JSON.parse(stdout).key
}

const profiling = (folder: string | undefined) =>
  folder === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${folder}`]

function program(child: ChildProcess, url: string, ask: () => void): Program {
  return {
    pid: child.pid as number,
    url,
    async stop() {
      const exited = child.exitCode === null ? once(child, 'exit') : undefined
      ask()
      await exited
    },
  }
}
