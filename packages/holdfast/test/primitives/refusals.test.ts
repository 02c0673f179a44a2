import { type RedisHandle, startRedis } from '@holdfast/services'
import { Activity, FixedWindow, Primitives } from 'holdfast/primitives'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { PATIENT } from './support/patient.js'
import { SECRET } from './support/topologies.js'

/** A server that is there and refuses to write says so in the middle of a script, at its first write. */
describe('what Redis refuses', () => {
  let server: RedisHandle
  let redis: Redis
  let primitives: Primitives
  beforeAll(async () => {
    server = await startRedis({ source: 'installed' })
    redis = new Redis(server.url)
    primitives = await Primitives.connect({ redis: server.url, secret: SECRET, ...PATIENT })
  })
  afterEach(async () => {
    await redis.replicaof('NO', 'ONE')
    await redis.config('SET', 'maxmemory', '0', 'min-replicas-to-write', '0')
  })
  afterAll(async () => {
    await primitives.close()
    redis.disconnect()
    await server.stop()
  })

  it.each<[string, () => Promise<unknown>]>([
    ['a replica', () => redis.replicaof('127.0.0.1', 1)],
    ['one without memory', () => redis.config('SET', 'maxmemory', '1')],
    ['one with too few replicas', () => redis.config('SET', 'min-replicas-to-write', '1')],
  ])('is unavailable, and nothing ran: %s', async (_, refuse) => {
    const window = new FixedWindow(primitives, 'login')
    const opened = new Activity(primitives, 'opened')
    await window.add('anna')
    await opened.markActive('anna')
    await refuse()
    const refused = { code: 'unavailable', outcome: 'not_executed', retryable: true }
    await expect(window.add('anna')).rejects.toMatchObject(refused)
    await expect(opened.markActive('bert')).rejects.toMatchObject(refused)
    await expect(opened.markManyActive(['bert'])).rejects.toMatchObject(refused)
    expect(await opened.wasActive('anna')).toBe(true)
  })
})
