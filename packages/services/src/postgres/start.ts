/** A private Postgres on a loopback port, in a folder of its own. */
import { existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ServicesError } from '../error.js'
import { scratchFolder } from '../folder.js'
import { settleFormerServer } from '../former-server.js'
import { startOnFreePort } from '../port.js'
import { ServerProcess } from '../server-process.js'
import { findPostgres, type PostgresSource } from './binaries.js'
import { createData, environment, passwordOf, USER } from './create-data.js'
import { unprivileged } from './unprivileged.js'

export interface PostgresOptions {
  /** Keeps the data here between runs. Without it: a temporary folder that goes with the server. */
  readonly folder?: string
  /** On a crash of the machine nothing committed is lost. Off: for tests only, several times as fast. Default: true. */
  readonly durable?: boolean
  /** Default: HOLDFAST_POSTGRES if set, else `any`. */
  readonly source?: PostgresSource
  /** Further settings by name, such as `{ max_connections: '50' }`. */
  readonly settings?: Readonly<Record<string, string>>
}

export interface PostgresHandle {
  /** Of the database `holdfast`, as the superuser `holdfast`. */
  readonly url: string
  readonly port: number
  readonly pid: number | undefined
  readonly source: 'installed' | 'npm'
  readonly majorVersion: number
  readonly folder: string
  stop(): Promise<void>
  /** SIGKILL, backends included. */
  kill(): Promise<void>
  /** SIGSTOP and SIGCONT, backends included. */
  pause(): void
  resume(): void
  /** The same port and folder again, whether it is still running or not. */
  restart(): Promise<void>
}

export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresHandle> {
  if (options.folder !== undefined) {
    mkdirSync(options.folder, { recursive: true })
    return await startIn(realpathSync(options.folder), options, () => {})
  }
  const scratch = scratchFolder('postgres')
  try {
    return await startIn(realpathSync(scratch.path), options, () => scratch.remove())
  } catch (error) {
    scratch.remove()
    throw error
  }
}

async function startIn(folder: string, options: PostgresOptions, afterStop: () => void): Promise<PostgresHandle> {
  const { durable = true, settings = {} } = options
  const source = options.source ?? sourceFromEnvironment()
  const data = join(folder, 'data')
  const binaries = findPostgres(source, data)
  const runner = unprivileged([folder, binaries.folder])
  if (!existsSync(data))
    await createData({ folder, data, binaries, runner, durable, kept: options.folder !== undefined })
  runner.own(data)
  await settleFormerServer({ pidFile: join(data, 'postmaster.pid'), folder: data, orderly: 'SIGINT', hard: 'SIGQUIT' })

  const logFile = join(folder, 'postgres.log')
  writeFileSync(logFile, '')
  const { server, port } = await startOnFreePort(async (port) => {
    const server = new ServerProcess({
      name: 'Postgres',
      command: runner.wrap({
        file: join(binaries.folder, 'postgres'),
        args: ['-D', data, ...settingArgs({ ...serverSettings(port, durable), ...settings })],
        env: environment(),
      }),
      folder,
      logFile,
      // Fast shutdown: sessions are ended, the data is left clean. (SIGTERM would wait for the sessions to end by themselves.)
      stopSignal: 'SIGINT',
      isReady: async (pid) => reportsReady(data, pid),
    })
    await server.start()
    return { server, port }
  })

  return {
    url: `postgres://${USER}${passwordOf(folder)}@127.0.0.1:${port}/${USER}`,
    port,
    get pid() {
      return server.pid
    },
    source: binaries.source,
    majorVersion: binaries.majorVersion,
    folder,
    stop: () => server.stop().then(afterStop),
    kill: () => server.kill(),
    pause: () => server.pause(),
    resume: () => server.resume(),
    restart: () => server.restart(),
  }
}

function sourceFromEnvironment(): PostgresSource {
  const value = process.env.HOLDFAST_POSTGRES
  if (value === undefined || value === '') return 'any'
  if (value === 'any' || value === 'installed' || value === 'npm') return value
  throw new ServicesError(`HOLDFAST_POSTGRES: expected any, installed or npm, got "${value}"`)
}

function serverSettings(port: number, durable: boolean): Record<string, string> {
  return {
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: '',
    max_connections: '200',
    // Made for a server with the machine to itself; here it shares with everything else.
    shared_buffers: '64MB',
    // The log is read by people when something failed; normal life is left out.
    log_checkpoints: 'off',
    timezone: 'UTC',
    log_timezone: 'UTC',
    ...(durable ? {} : { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off', autovacuum: 'off' }),
  }
}

const settingArgs = (settings: Readonly<Record<string, string>>) =>
  Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])

/** The line of postmaster.pid that pg_ctl looks at as well; the first line tells whose file it is. */
function reportsReady(data: string, pid: number): boolean {
  try {
    const lines = readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')
    return Number(lines[0]) === pid && lines[7]?.trim() === 'ready'
  } catch {
    return false
  }
}
