import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openDevServices } from '@holdfast/services'
import { Client } from 'pg'
import { afterEach, expect, test } from 'vitest'
import { onPath } from '../src/executables.js'
import { scratchFolder } from '../src/folder.js'
import { alive, type ParentOptions, startParent, until } from './parent.js'

const NOBODY = 65534
const IS_ROOT = process.getuid?.() === 0
const folders: { remove(): void }[] = []

function folder(): string {
  const scratch = scratchFolder('a b')
  folders.push(scratch)
  return scratch.path
}

afterEach(() => {
  for (const one of folders.splice(0)) one.remove()
})

async function query(url: string, statement: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(statement)).rows
  } finally {
    await client.end()
  }
}

/** Starts in that folder, is killed, starts again: what was committed is there, and at the end nothing runs. */
async function survivesKill(dir: string, options?: ParentOptions): Promise<void> {
  const first = await startParent('dev', dir, options)
  expect(first.started.message).toBeUndefined()
  await query(first.started.databaseUrl, 'CREATE TABLE kept AS SELECT 1 AS n')
  await first.end('SIGKILL')

  const second = await startParent('dev', dir, options)
  expect(second.started.message).toBeUndefined()
  expect(await query(second.started.databaseUrl, 'SELECT n FROM kept')).toEqual([{ n: 1 }])
  await second.end('SIGKILL')
  await until(() => alive(second.started.pids).length === 0)
}

test('a folder in use is refused, to another process and to this one', async () => {
  const dir = join(folder(), 'data')
  const services = await openDevServices({ dir, postgres: false })
  try {
    const other = await startParent('dev', dir)
    expect(other.started).toMatchObject({ error: 'ServicesError' })
    expect(other.started.message).toContain(`already running in ${dir} (process ${process.pid})`)
    await expect(openDevServices({ dir })).rejects.toThrow('already running')
  } finally {
    await services.stop()
  }
  await (await openDevServices({ dir, postgres: false })).stop()
})

test('a lock whose process number belongs to another process by now is no obstacle', async () => {
  const dir = folder()
  writeFileSync(join(dir, 'lock'), `${process.pid}\nanother boot/1\n`)
  const services = await openDevServices({ dir, postgres: false })
  expect(readFileSync(join(dir, 'lock'), 'utf8')).not.toContain('another boot')
  await services.stop()
  expect(existsSync(join(dir, 'lock'))).toBe(false)
})

test('with both given from elsewhere it starts nothing and writes nothing', async () => {
  const dir = join(folder(), 'data')
  const services = await openDevServices({ dir, redis: false, postgres: false })
  expect(services).toMatchObject({ redisUrl: undefined, databaseUrl: undefined })
  await services.stop()
  expect(existsSync(dir)).toBe(false)
})

test('when one server fails the other is stopped and the folder is free again', async () => {
  const dir = folder()
  const services = await openDevServices({ dir })
  await services.stop()
  writeFileSync(join(dir, 'postgres/data/PG_VERSION'), '9\n')
  await expect(openDevServices({ dir })).rejects.toThrow('written by Postgres 9')
  await (await openDevServices({ dir, postgres: false })).stop()
})

// What an ordinary user gets; started by root, the same is shown for each of the ways that Postgres can be run then.
if (!IS_ROOT) test('data survives kill -9 of its parent', () => survivesKill(join(folder(), 'data')))

if (IS_ROOT) {
  test('data survives kill -9 of its parent, and Postgres runs as nobody', async () => {
    const dir = join(folder(), 'data')
    await survivesKill(dir)
    expect(statSync(join(dir, 'postgres/data')).uid).toBe(NOBODY)
  })

  test('runs under a folder that only root may enter', async () => {
    const closed = folder()
    chmodSync(closed, 0o700)
    await survivesKill(join(closed, 'data'), { env: { HOLDFAST_POSTGRES: 'npm' } })
  })

  test('runs under a folder that only root may enter where user namespaces are not allowed', async () => {
    const closed = folder()
    // Everything that is needed but the command that makes namespaces.
    const bin = join(closed, 'bin')
    mkdirSync(bin)
    for (const name of ['setpriv', 'true', 'sleep', 'rm', 'redis-server'])
      symlinkSync(onPath(name)[0] ?? '', join(bin, name))
    chmodSync(closed, 0o700)
    const dir = join(closed, 'data')
    await survivesKill(dir, { env: { PATH: bin } })
    expect(statSync(join(dir, 'postgres/data')).uid).toBe(NOBODY)
  })

  // Another user needs to reach the sources to run them.
  if (everybodyReaches(fileURLToPath(import.meta.url))) {
    test.each([
      ['an ordinary user', NOBODY],
      ['a user without a name', 54321],
    ])('runs for %s', async (_, uid) => {
      const own = folder()
      chownSync(own, uid, uid)
      await survivesKill(join(own, 'data'), { uid })
    })

    test('tells an ordinary user whose data it is', async () => {
      const dir = folder()
      await survivesKill(dir)
      const user = NOBODY + 1
      const refused = async () => (await startParent('dev', dir, { uid: user })).started.message

      expect(await refused()).toMatch(/can't be written \(EACCES at .*Choose one that you may write to/)
      for (const path of ['', '.gitignore', 'redis', 'postgres']) chownSync(join(dir, path), user, user)
      expect(await refused()).toMatch(/can't be written \(EACCES at .*redis/)
      rmSync(join(dir, 'redis'), { recursive: true })
      expect(await refused()).toMatch(/belongs to another user \(uid 65534\)/)
    })
  }
}

function everybodyReaches(path: string): boolean {
  if (path === dirname(path)) return true
  return (statSync(path).mode & (statSync(path).isDirectory() ? 0o001 : 0o004)) !== 0 && everybodyReaches(dirname(path))
}
