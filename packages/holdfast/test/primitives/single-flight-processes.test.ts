/** What is left of a single flight when the process that loads dies, or Redis goes and comes: real ones of both. */
import { startRedis } from '@holdfast/services'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { Primitives, SingleFlight } from '../../src/primitives/index.js'
import { PATIENT } from './support/patient.js'
import { SECRET } from './support/topologies.js'
import { Workers } from './support/workers.js'

let workers: Workers
beforeAll(async () => {
  workers = await Workers.prepare(new URL('./support/flight-worker.ts', import.meta.url))
})
afterAll(() => workers.stop())

const SOON = { timeout: 30_000, interval: 20 }

describe('the process that loads', () => {
  it('and is killed: one of those who wait loads in its place, when the marker is over and not before', async () => {
    const server = await startRedis({ source: 'installed' })
    const options = { url: server.url, markerMs: 5_000 }
    const first = workers.start({ ...options, hangs: true, name: 'first' })
    await vi.waitFor(() => expect(first.told).toEqual([{ loads: 'first' }]), SOON)
    const rest = ['second', 'third'].map((name) => workers.start({ ...options, hangs: false, name }))
    // Longer than the marker: it is renewed as long as its process lives.
    await new Promise((resolve) => setTimeout(resolve, 7_500))
    expect(rest.map(({ told }) => told)).toEqual([[], []])
    await first.kill()
    await vi.waitFor(() => expect(rest.flatMap(({ told }) => told)).toHaveLength(3), SOON)
    const told = rest.flatMap((one) => one.told) as { loads?: string; got?: string }[]
    const loaded = told.filter(({ loads }) => loads !== undefined)
    expect(loaded).toHaveLength(1)
    expect(told.filter(({ got }) => got !== undefined).map(({ got }) => got)).toEqual([
      loaded[0]?.loads,
      loaded[0]?.loads,
    ])
    await Promise.all(rest.map(({ ended }) => ended))
    await server.stop()
  }, 120_000)
})

describe('Redis', () => {
  it('that goes while a value is loaded: the load goes on, and no other begins', async () => {
    const server = await startRedis({ source: 'installed' })
    const lost: string[] = []
    const telemetry = { count: (_: string, labels: Record<string, string> = {}) => void lost.push(`${labels.result}`) }
    const primitives = await Primitives.connect({ redis: server.url, secret: SECRET, ...PATIENT, telemetry })
    const flight = new SingleFlight(primitives, 'price', { markerMs: 500, loadMaxMs: 600_000 })
    let letGo = () => {}
    let loads = 0
    const call = flight.get('a', async () => {
      loads += 1
      await new Promise<void>((resolve) => {
        letGo = resolve
      })
      return loads
    })
    await vi.waitFor(() => expect(loads).toBe(1), SOON)
    await server.stop()
    await vi.waitFor(() => expect(lost).toContain('lost'), SOON)
    const calls = Array.from({ length: 20 }, () => flight.get('a', () => 'another'))
    await vi.waitFor(() => expect(lost.filter((result) => result === 'unavailable').length).toBeGreaterThan(0), SOON)
    letGo()
    expect(await call).toMatchObject({ value: 1, source: 'loaded' })
    expect(new Set((await Promise.all(calls)).map(({ value }) => value))).toEqual(new Set([1]))
    expect(loads).toBe(1)
    await primitives.close()
  }, 120_000)

  it('that goes: the last value is given and loaded anew by this process alone; that comes back: all share again', async () => {
    const server = await startRedis({ source: 'installed' })
    const primitives = await Primitives.connect({ redis: server.url, secret: SECRET, ...PATIENT })
    const flight = new SingleFlight(primitives, 'price', { ttlMs: 500, staleMs: 600_000, eagerness: 0 })
    let loads = 0
    const load = () => {
      loads += 1
      return loads
    }
    expect(await flight.get('a', load)).toMatchObject({ value: 1, source: 'loaded' })
    await server.kill()
    const seen = new Set<string>()
    await vi.waitFor(async () => {
      const { value, source } = await flight.get('a', load)
      seen.add(source)
      expect(value).toBeGreaterThan(1)
    }, SOON)
    expect([...seen]).toEqual(['kept'])
    await server.restart()
    await vi.waitFor(async () => {
      const { source } = await flight.get('a', load)
      expect(['loaded', 'fresh', 'stale']).toContain(source)
    }, SOON)
    await primitives.close()
    await server.stop()
  }, 120_000)
})
