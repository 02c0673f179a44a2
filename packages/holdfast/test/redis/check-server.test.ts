import { type RedisHandle, startPostgres, startRedis } from '@holdfast/services'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../../test/servers.js'
import { Holdfast } from '../../src/index.js'
import { judgeRedis, type RedisState } from '../../src/redis/check-server.js'
import { inspectRedis, RedisConnection } from '../../src/redis/index.js'

const SOUND: RedisState = {
  version: '7.0.15',
  role: 'master',
  policy: 'noeviction',
  maxMemory: 0,
  appendOnly: false,
  save: '',
}

const findings = (state: Partial<RedisState>, memory: boolean) =>
  judgeRedis({ ...SOUND, ...state }, { memory }).filter(({ severity }) => severity !== 'ok')

describe('the judgement of a Redis', () => {
  it('finds nothing on a sound one: without memory durability it needs no disk', () => {
    expect(findings({}, false)).toEqual([])
    expect(findings({ appendOnly: true }, true)).toEqual([])
    expect(findings({ version: '7.0.0' }, false)).toEqual([])
  })

  it.each([
    ['redis_version', 'danger', { version: '6.2.14' }, false],
    ['role', 'danger', { role: 'slave' }, false],
    ['maxmemory_policy', 'warning', { policy: 'allkeys-lru' }, false],
    ['maxmemory_policy', 'danger', { policy: 'allkeys-lru', appendOnly: true }, true],
    ['maxmemory_policy', 'warning', { policy: 'volatile-lru' }, false],
    ['persistence', 'warning', {}, true],
    ['persistence', 'warning', { save: '3600 1' }, true],
  ])('finds %s as %s in %j (memory: %s)', (setting, severity, state, memory) => {
    expect(findings(state, memory)).toEqual([{ setting, severity, text: expect.stringMatching(/.{20}/) }])
  })
})

describe('on a real server', () => {
  let server: RedisHandle
  beforeAll(async () => {
    server = await startRedis({ source: 'installed', settings: ['maxmemory 100mb', 'maxmemory-policy allkeys-lru'] })
  })
  afterAll(() => server.stop())

  it('sees what it was started with', async () => {
    const redis = new RedisConnection(server.url)
    const checks = await inspectRedis(redis, { memory: true })
    expect(checks.map(({ setting, severity }) => `${setting} ${severity}`)).toEqual([
      'rights ok',
      'redis_version ok',
      'role ok',
      'maxmemory_policy danger',
      'persistence warning',
    ])
    await redis.close()
  })

  it('tells it when connecting, and refuses it where that is asked for', async () => {
    const told: unknown[] = []
    const options = { redis: server.url, postgres: await freshDatabase(), durability: 'memory' as const }
    const log = (_level: string, event: string, facts: unknown) => void told.push({ event, ...(facts as object) })
    const hf = await Holdfast.connect({ ...options, telemetry: { log } })
    expect(told).toContainEqual(
      expect.objectContaining({ event: 'redis_setting', setting: 'maxmemory_policy', severity: 'danger' }),
    )
    await hf.close()
    const raw = new Redis(server.url)
    await raw.config('SET', 'maxmemory-policy', 'noeviction')
    raw.disconnect()
    // The Postgres of tests is one that forgets.
    await expect(Holdfast.connect({ ...options, strict: true })).rejects.toMatchObject({
      code: 'incompatible',
      setting: 'fsync',
    })
  })

  it('leaves nothing behind where it is refused', async () => {
    const raw = new Redis(server.url)
    await raw.config('SET', 'maxmemory-policy', 'allkeys-lru')
    raw.disconnect()
    const lasting = await startPostgres({ durable: true })
    const gauges = new Set<string>()
    const gauge = (name: string, _read: () => number, labels = {}) => {
      const one = `${name} ${JSON.stringify(labels)}`
      gauges.add(one)
      return () => void gauges.delete(one)
    }
    const options = { redis: server.url, postgres: lasting.url, durability: 'memory', strict: true } as const
    await expect(Holdfast.connect({ ...options, telemetry: { gauge } })).rejects.toMatchObject({
      code: 'incompatible',
      setting: 'maxmemory_policy',
    })
    expect([...gauges]).toEqual([])
    await expect(Holdfast.connect({ ...options, strict: 'yes' as never })).rejects.toMatchObject({
      code: 'invalid_argument',
      message: expect.stringMatching(/^strict: expected true or false, got/),
    })
    await lasting.stop()
  })
})
