/** A new data folder with one database and one superuser in it, both called holdfast. */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ServicesError } from '../error.js'
import type { Command } from '../server-process.js'
import type { PostgresBinaries } from './binaries.js'
import type { Unprivileged } from './unprivileged.js'

export const USER = 'holdfast'

export interface NewData {
  readonly folder: string
  readonly data: string
  readonly binaries: PostgresBinaries
  readonly runner: Unprivileged
  readonly durable: boolean
  /** Data that stays is protected by a password: other people on the machine reach the loopback interface too. */
  readonly kept: boolean
}

/** Made beside its place and moved there when complete: a set-up that was cut short leaves nothing that looks like data. */
export async function createData({ folder, data, binaries, runner, durable, kept }: NewData): Promise<void> {
  const unfinished = join(folder, 'data.unfinished')
  rmSync(unfinished, { recursive: true, force: true })
  mkdirSync(unfinished, { mode: 0o700 })
  runner.own(unfinished)
  const command = (name: string, ...args: string[]) =>
    runner.wrap({ file: join(binaries.folder, name), args, env: environment() })

  const settings = [
    '--encoding=UTF8',
    '--locale=C',
    `--username=${USER}`,
    '--auth=trust',
    ...(durable ? [] : ['--no-sync']),
  ]
  await run(command('initdb', '-D', unfinished, ...settings), folder)

  const password = kept ? randomBytes(24).toString('hex') : undefined
  const statements = [`CREATE DATABASE ${USER}`, ...(password ? [`ALTER ROLE ${USER} PASSWORD '${password}'`] : [])]
  const single = command('postgres', '--single', '-D', unfinished, ...(durable ? [] : ['-F']), 'postgres')
  await run(single, folder, `${statements.join('\n')}\n`)
  if (password) {
    writeFileSync(join(unfinished, 'pg_hba.conf'), 'host all all 127.0.0.1/32 scram-sha-256\n')
    writeFileSync(passwordFile(folder), password, { mode: 0o600 })
  }
  renameSync(unfinished, data)
}

const passwordFile = (folder: string) => join(folder, 'password')

/** As it stands in a URL: `:secret`, or nothing where there is none. */
export function passwordOf(folder: string): string {
  return existsSync(passwordFile(folder)) ? `:${readFileSync(passwordFile(folder), 'utf8').trim()}` : ''
}

/** Settings of a person's own Postgres (PGDATA, PGPORT, …) are not meant for this one. */
export function environment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('PG')))
}

async function run(command: Command, cwd: string, input = ''): Promise<void> {
  const { file, args, ...options } = command
  const child = spawn(file, args, { ...options, cwd, stdio: ['pipe', 'pipe', 'pipe'] })
  let output = ''
  child.stdout.on('data', (chunk) => (output += chunk))
  child.stderr.on('data', (chunk) => (output += chunk))
  child.stdin.on('error', () => {})
  child.stdin.end(input)
  const [code] = (await once(child, 'close')) as [number | null]
  if (code !== 0) throw new ServicesError(`${file} failed with exit code ${code}:\n${output.trim()}`)
}
