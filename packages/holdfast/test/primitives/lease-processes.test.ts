/** What a lease is worth between processes that are paused, and servers that fail: real ones of both. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type RedisHandle, startRedis } from '@holdfast/services'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { freshDatabase } from '../../../../test/servers.js'
import { type HeldLease, Leases, Primitives } from '../../src/primitives/index.js'
import { PATIENT } from './support/patient.js'
import { SECRET } from './support/topologies.js'
import { Workers } from './support/workers.js'

let workers: Workers
beforeAll(async () => {
  workers = await Workers.prepare(new URL('./support/lease-worker.ts', import.meta.url))
})
afterAll(() => workers.stop())

describe.each(['redis', 'postgres'] as const)('processes with tokens from %s', (tokens) => {
  it('that are paused for longer than their lease lose no update of each other', async () => {
    const server = await startRedis({ source: 'installed' })
    const postgres = tokens === 'postgres' ? await freshDatabase() : undefined
    const rounds = 25
    const started = [0, 1, 2].map(() => workers.start({ url: server.url, postgres, rounds, ttlMs: 150 }))
    const ended = Promise.all(started.map((worker) => worker.ended))
    let isOver = false
    void ended.then(() => {
      isOver = true
    })
    for (let n = 0; !isOver && n < 40; n += 1) {
      const worker = started[n % started.length]
      worker?.pause()
      await sleep(250)
      worker?.resume()
      await sleep(30)
    }
    expect(await ended).toEqual([0, 0, 0])
    const told = started.flatMap((worker) => worker.told) as { taken: number; refused: number }[]
    const redis = new Redis(server.url)
    expect(told.map(({ taken }) => taken)).toEqual([rounds, rounds, rounds])
    expect(Number(await redis.hget('number', 'value'))).toBe(3 * rounds)
    redis.disconnect()
    await server.stop()
  }, 120_000)
})

describe('a server', () => {
  it('that is emptied while a lease is held: the holder is told at the next renewal', async () => {
    await withServer(async (server, primitives) => {
      const lease = await held(new Leases(primitives, 'send', { ttlMs: 15_000 }), 'a')
      const redis = new Redis(server.url)
      await redis.flushall()
      redis.disconnect()
      await vi.waitFor(() => expect(lease.signal.aborted).toBe(true), 25_000)
      expect(lease.signal.reason.message).toContain('somebody else, or forgot it')
      const next = await held(new Leases(primitives, 'send'), 'a')
      expect(next.token).toBeGreaterThan(lease.token)
    })
  }, 60_000)

  it('that is away while a lease is held: it is lost when its time is over, and not before', async () => {
    await withServer(async (server, primitives) => {
      const lease = await held(new Leases(primitives, 'send', { ttlMs: 5_000 }), 'a')
      const from = performance.now()
      const { leftMs } = lease
      await server.stop()
      await expect(lease.renew()).rejects.toMatchObject({ code: 'unavailable' })
      await vi.waitFor(() => expect(lease.signal.aborted).toBe(true), 25_000)
      expect(performance.now() - from).toBeGreaterThanOrEqual(leftMs)
      expect(lease.signal.reason.message).toContain('not renewed in time')
      expect(await lease.release()).toBe('lost')
    })
  }, 60_000)
})

async function held(leases: Leases, scope: string): Promise<HeldLease> {
  const acquired = await leases.acquire(scope)
  if (acquired.result === 'busy') throw new Error('It was to be free')
  return acquired.lease
}

async function withServer(use: (server: RedisHandle, primitives: Primitives) => Promise<void>): Promise<void> {
  const server = await startRedis({ source: 'installed' })
  const primitives = await Primitives.connect({ redis: server.url, secret: SECRET, ...PATIENT })
  try {
    await use(server, primitives)
  } finally {
    await primitives.close()
    await server.stop()
  }
}
