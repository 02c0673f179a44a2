import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type RedisHandle, type RedisSource, startRedis } from '@holdfast/services'
import { Redis } from 'ioredis'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { scratchFolder } from '../src/folder.js'

const started: RedisHandle[] = []
const clients: Redis[] = []
const folders: { remove(): void }[] = []

async function start(options: Parameters<typeof startRedis>[0]): Promise<RedisHandle> {
  const server = await startRedis(options)
  started.push(server)
  return server
}

function connect(url: string): Redis {
  const client = new Redis(url, { retryStrategy: null, maxRetriesPerRequest: 0 })
  client.on('error', () => {})
  clients.push(client)
  return client
}

function folder(): string {
  const scratch = scratchFolder('a b')
  folders.push(scratch)
  return scratch.path
}

afterEach(async () => {
  vi.unstubAllEnvs()
  for (const client of clients.splice(0)) client.disconnect()
  await Promise.all(started.splice(0).map((server) => server.stop()))
  for (const one of folders.splice(0)) one.remove()
})

describe.each<Exclude<RedisSource, 'any'>>(['installed', 'wasm'])('Redis, %s', (source) => {
  test('runs scripts, each call in well under the 100 ms of a timer', async () => {
    const { url } = await start({ source })
    const client = connect(url)
    await client.ping()
    const tookMs: number[] = []
    for (let n = 1; n <= 50; n++) {
      const startedAt = performance.now()
      expect(await client.eval("return redis.call('INCR', KEYS[1])", 1, 'n')).toBe(n)
      tookMs.push(performance.now() - startedAt)
    }
    // The one in the middle: the machine may have stood still during some of them.
    expect(tookMs.sort((a, b) => a - b)[25]).toBeLessThan(20)
  })

  test('comes back on the same port after a kill', async () => {
    const server = await start({ source })
    const { pid, port } = server
    await server.kill()
    expect(server.pid).toBeUndefined()
    await expect(connect(server.url).ping()).rejects.toThrow()
    await server.restart()
    expect(server.port).toBe(port)
    expect(server.pid).not.toBe(pid)
    expect(await connect(server.url).ping()).toBe('PONG')
  })

  test('paused it answers nothing, resumed it goes on', async () => {
    const server = await start({ source })
    const client = connect(server.url)
    await client.ping()
    server.pause()
    const answer = client.ping()
    const silence = new Promise((resolve) => setTimeout(resolve, 200, 'silence'))
    expect(await Promise.race([answer, silence])).toBe('silence')
    server.resume()
    expect(await answer).toBe('PONG')
  })

  test('in a folder of its own it asks for a password', async () => {
    const server = await start({ source, folder: folder() })
    expect(await connect(server.url).ping()).toBe('PONG')
    await expect(connect(`redis://:guessed@127.0.0.1:${server.port}`).get('key')).rejects.toThrow(/WRONGPASS/)
  })
})

test('an installed server keeps its data in the folder it was given', async () => {
  const path = folder()
  const first = await start({ source: 'installed', folder: path })
  expect(first.persistent).toBe(true)
  await connect(first.url).set('kept', '1')
  await first.kill()
  const second = await start({ source: 'installed', folder: path })
  expect(await connect(second.url).get('kept')).toBe('1')
})

test('WebAssembly says that it keeps nothing', async () => {
  const server = await start({ source: 'wasm', folder: folder() })
  expect(server.persistent).toBe(false)
})

test('HOLDFAST_REDIS chooses, and a wrong word is named', async () => {
  vi.stubEnv('HOLDFAST_REDIS', 'wasm')
  expect((await start({})).source).toBe('wasm')
  vi.stubEnv('HOLDFAST_REDIS', 'docker')
  await expect(startRedis()).rejects.toThrow('HOLDFAST_REDIS: expected any, installed or wasm, got "docker"')
})

test('without an installed server it falls back to WebAssembly, and says so where that is not enough', async () => {
  vi.stubEnv('PATH', '/nowhere')
  expect((await start({})).source).toBe('wasm')
  await expect(startRedis({ source: 'installed' })).rejects.toThrow(/Install redis-server or valkey-server/)
})

test('a temporary server leaves nothing behind', async () => {
  const server = await start({ source: 'installed' })
  const [, path = ''] = (await connect(server.url).config('GET', 'dir')) as string[]
  expect(existsSync(join(path, 'redis.conf'))).toBe(true)
  await server.stop()
  expect(existsSync(path)).toBe(false)
})
