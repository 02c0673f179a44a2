import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type PostgresHandle, type PostgresSource, ServicesError, startPostgres } from '@holdfast/services'
import { Client } from 'pg'
import { afterEach, describe, expect, test } from 'vitest'
import { scratchFolder } from '../src/folder.js'

const started: PostgresHandle[] = []
const folders: { remove(): void }[] = []

async function start(options: Parameters<typeof startPostgres>[0]): Promise<PostgresHandle> {
  const server = await startPostgres(options)
  started.push(server)
  return server
}

function folder(): string {
  const scratch = scratchFolder('a b')
  folders.push(scratch)
  return scratch.path
}

afterEach(async () => {
  await Promise.all(started.splice(0).map((server) => server.stop()))
  for (const one of folders.splice(0)) one.remove()
})

async function query(url: string, statement: string): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: url })
  // A server that is killed ends its connections with an error.
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query(statement)).rows
  } finally {
    await client.end()
  }
}

describe.each<Exclude<PostgresSource, 'any'>>(['installed', 'npm'])('Postgres, %s', (source) => {
  test('keeps what was committed through a kill, a restart and a new start in the same folder', async () => {
    const path = folder()
    const first = await start({ source, folder: path })
    await query(first.url, 'CREATE TABLE kept AS SELECT 1 AS n')
    await first.kill()
    expect(first.pid).toBeUndefined()

    await first.restart()
    expect(await query(first.url, 'SELECT n FROM kept')).toEqual([{ n: 1 }])
    await first.stop()

    // The version that wrote the folder runs it again, whichever else is there.
    const second = await start({ folder: path })
    expect(second).toMatchObject({ source, majorVersion: first.majorVersion })
    expect(await query(second.url, 'SELECT n FROM kept')).toEqual([{ n: 1 }])
  })

  test('leaves nothing behind when it was temporary', async () => {
    const server = await start({ source, durable: false })
    expect(existsSync(server.folder)).toBe(true)
    await server.stop()
    expect(existsSync(server.folder)).toBe(false)
  })
})

test('paused it answers nothing, resumed it goes on', async () => {
  const server = await start({ durable: false })
  const client = new Client({ connectionString: server.url })
  await client.connect()
  server.pause()
  const answer = client.query('SELECT 1 AS n')
  const silence = new Promise((resolve) => setTimeout(resolve, 200, 'silence'))
  expect(await Promise.race([answer, silence])).toBe('silence')
  server.resume()
  expect((await answer).rows).toEqual([{ n: 1 }])
  await client.end()
})

test('data that is kept asks for a password', async () => {
  const server = await start({ folder: folder() })
  const open = Object.assign(new URL(server.url), { password: 'guessed' }).href
  await expect(query(open, 'SELECT 1')).rejects.toThrow('password authentication failed')
  expect(await query(server.url, 'SELECT 1 AS n')).toEqual([{ n: 1 }])
})

test('starts although its old process number belongs to another process by now', async () => {
  const path = folder()
  const first = await start({ folder: path })
  const pidFile = join(path, 'data/postmaster.pid')
  const lines = readFileSync(pidFile, 'utf8').split('\n')
  await first.kill()
  writeFileSync(pidFile, [process.pid, ...lines.slice(1)].join('\n'))

  const second = await start({ folder: path })
  expect(await query(second.url, 'SELECT 1 AS n')).toEqual([{ n: 1 }])
})

test('starts after a set-up that was cut short', async () => {
  const path = folder()
  mkdirSync(join(path, 'data.unfinished'))
  writeFileSync(join(path, 'data.unfinished/PG_VERSION'), '15\n')
  const server = await start({ folder: path, durable: false })
  expect(await query(server.url, 'SELECT 1 AS n')).toEqual([{ n: 1 }])
})

test('names the version that wrote the data when that one is missing', async () => {
  const path = folder()
  mkdirSync(join(path, 'data'))
  writeFileSync(join(path, 'data/PG_VERSION'), '9\n')
  const failure = startPostgres({ folder: path })
  await expect(failure).rejects.toThrow(ServicesError)
  await expect(failure).rejects.toThrow(/written by Postgres 9; found: .*Install Postgres 9/)
})

test('a setting that Postgres refuses is shown with its own words', async () => {
  const failure = startPostgres({ durable: false, settings: { max_connections: 'many' } })
  await expect(failure).rejects.toThrow(/Postgres ended while starting.*max_connections/s)
})
