import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type Clone, type Command, cloneRepository, type RunOptions } from './clone.js'

/** No registry, no proxy: whatever tried to fetch something would fail. */
const OFFLINE = {
  npm_config_registry: 'http://127.0.0.1:9/',
  npm_config_offline: 'true',
  npm_config_update_notifier: 'false',
}
/** What is there is there, on a machine that stands still for a moment too. */
const PATIENT = { HOLDFAST_HEALTH_TIMEOUT_MS: '20000' }
const NOBODY = 65534
const IS_ROOT = process.getuid?.() === 0
const STACK_TRACE = /^\s+at .+:\d+:\d+\)?$/m

let clone: Clone
let running: Command[] = []

beforeAll(async () => {
  clone = await cloneRepository()
})

afterEach(async () => {
  for (const command of running) command.process.kill('SIGTERM')
  await Promise.all(running.map((command) => command.ended))
  running = []
})

afterAll(() => clone.remove())

function npmStart(args: readonly string[] = ['--port', '0'], options: RunOptions = {}): Command {
  const env = { ...OFFLINE, ...PATIENT, REDIS_URL: undefined, DATABASE_URL: undefined, ...options.env }
  const command = clone.run('npm', ['start', '--silent', '--', ...args, '--json'], { ...options, env })
  running.push(command)
  return command
}

interface Ready {
  url: string
  dataDir: string
}

async function ready(command: Command): Promise<Ready> {
  const [line] = await command.seen(/^\{"event":"ready".*\}$/m)
  return JSON.parse(line) as Ready
}

/** As a person would: who was killed may take longer to end than a start waits for that. */
async function startAgain(): Promise<Ready> {
  const deadline = performance.now() + 60_000
  for (;;) {
    const command = npmStart()
    try {
      return await ready(command)
    } catch (error) {
      if (!command.output().includes('already running') || performance.now() > deadline) throw error
    }
  }
}

const isHealthy = async ({ url }: Ready) => (await fetch(`${url}/health/ready`)).status === 200

/** The private Postgres, as its folder describes it. */
async function query({ dataDir }: Ready, statement: string): Promise<unknown[]> {
  const port = readFileSync(join(dataDir, 'postgres/data/postmaster.pid'), 'utf8').split('\n')[3]
  const password = readFileSync(join(dataDir, 'postgres/password'), 'utf8')
  const client = new Client({ connectionString: `postgres://holdfast:${password}@127.0.0.1:${port}/holdfast` })
  await client.connect()
  try {
    return (await client.query(statement)).rows
  } finally {
    await client.end()
  }
}

/** Process numbers of servers that work in the clone's data folder. */
function servers(): string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      return readlinkSync(`/proc/${pid}/cwd`).startsWith(join(clone.path, '.holdfast'))
    } catch {
      return false
    }
  })
}

test('a second start is offline, ready within 5 s, and ends without a trace on Ctrl-C', async () => {
  let command = npmStart()
  let server = await ready(command)
  // The fastest of three: how long a start takes is asked here, not how busy the machine is.
  const tookMs: number[] = []
  while (tookMs.length < 3) {
    command.process.kill('SIGTERM')
    await command.ended
    const startedAt = performance.now()
    command = npmStart()
    server = await ready(command)
    tookMs.push(performance.now() - startedAt)
  }
  expect(Math.min(...tookMs)).toBeLessThan(5_000)
  expect(await isHealthy(server)).toBe(true)
  expect(servers().length).toBeGreaterThanOrEqual(2)

  // What a terminal does: to the whole group.
  process.kill(-(command.process.pid as number), 'SIGINT')
  await command.ended
  expect(servers()).toEqual([])
  await expect(fetch(server.url)).rejects.toThrow()
})

test('an interrupt sent to npm alone stops everything, orderly', async () => {
  const command = npmStart()
  const { dataDir } = await ready(command)
  command.process.kill('SIGINT')
  await command.ended
  expect(servers()).toEqual([])
  // Postgres removes it at the end of an orderly stop only.
  expect(readdirSync(join(dataDir, 'postgres/data'))).not.toContain('postmaster.pid')
})

test('of two at once the second says so and harms nothing', async () => {
  const first = await ready(npmStart())
  const second = npmStart()
  expect(await second.ended).not.toBe(0)
  expect(second.output()).toMatch(/already running in .*a clone\/\.holdfast \(process \d+\)/)
  expect(second.output()).not.toMatch(STACK_TRACE)
  expect(await isHealthy(first)).toBe(true)
})

test('two at once on first use: one runs, the other says so', async () => {
  const unused = ['--port', '0', '--data-dir', join(clone.path, '.holdfast/unused')]
  const both = [npmStart(unused), npmStart(unused)]
  const outcomes = await Promise.allSettled(both.map(ready))
  expect(outcomes.map((outcome) => outcome.status).sort()).toEqual(['fulfilled', 'rejected'])
})

test.each(['npm', 'server'])('after kill -9 of the %s it starts again, data still there', async (victim) => {
  const first = npmStart()
  const before = await ready(first)
  await query(before, `CREATE TABLE kept_${victim} AS SELECT 1 AS n`)
  const pid = victim === 'npm' ? first.process.pid : holderOf(before)
  process.kill(pid as number, 'SIGKILL')

  const after = await startAgain()
  expect(await query(after, `SELECT n FROM kept_${victim}`)).toEqual([{ n: 1 }])
  expect(await isHealthy(after)).toBe(true)
})

const holderOf = ({ dataDir }: Ready) => Number.parseInt(readFileSync(join(dataDir, 'lock'), 'utf8'), 10)

test('a port that is taken is named, together with the way out', async () => {
  const holder = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => holder.once('listening', resolve))
  const { port } = holder.address() as { port: number }
  try {
    const command = npmStart(['--port', String(port)])
    expect(await command.ended).not.toBe(0)
    expect(command.output()).toContain(String(port))
    expect(command.output()).toContain('--port')
    expect(command.output()).not.toMatch(STACK_TRACE)
  } finally {
    holder.close()
  }
  expect(servers()).toEqual([])
})

test.each(['nonsense', 'redis://127.0.0.1:9', 'http://127.0.0.1:6379'])(
  'REDIS_URL=%s is refused clearly',
  async (url) => {
    const command = npmStart(['--port', '0'], { env: { REDIS_URL: url } })
    expect(await command.ended).not.toBe(0)
    expect(command.output()).toContain('REDIS_URL')
    expect(command.output()).not.toMatch(STACK_TRACE)
    expect(servers()).toEqual([])
  },
)

test('a folder that may not be written is named, and another one can be used', async () => {
  // Root may write everywhere, so it is another user then.
  const uid = IS_ROOT ? NOBODY : undefined
  const home = join(clone.path, '..', 'home')
  mkdirSync(home)
  if (uid) chownSync(home, uid, uid)
  else chmodSync(clone.path, 0o555)
  try {
    const refused = npmStart(['--port', '0'], { uid, env: { HOME: home } })
    expect(await refused.ended).not.toBe(0)
    expect(refused.output()).toMatch(/\.holdfast can't be written \(EACCES.*--data-dir/)
    expect(refused.output()).not.toMatch(STACK_TRACE)

    const elsewhere = npmStart(['--port', '0', '--data-dir', join(home, 'data')], { uid, env: { HOME: home } })
    expect(await isHealthy(await ready(elsewhere))).toBe(true)
  } finally {
    chmodSync(clone.path, 0o755)
  }
})
