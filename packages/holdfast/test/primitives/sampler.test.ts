import {
  FixedWindow,
  type KeySample,
  KeySampler,
  PackedCounters,
  type Primitives,
  SingleFlight,
} from 'holdfast/primitives'

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { whileAway } from './support/away.js'
import { type On, onSingle, TOPOLOGIES } from './support/topologies.js'

/** Generous: the machine may be busy. */
const SOON = { timeout: 20_000 }

async function walk(sampler: KeySampler): Promise<{ sample: KeySample; steps: number }> {
  for (let steps = 1; ; steps += 1) {
    const sample = await sampler.step()
    if (sample) return { sample, steps }
  }
}

describe.each(TOPOLOGIES)('the sampler on %s', (_, open) => {
  // Of an owner that nobody else is: the Cluster is shared.
  const owner = `sampled-${process.pid}`
  let on: On
  beforeAll(async () => {
    on = await open({ owner })
  })
  afterAll(() => on.close())

  it('counts the keys of each primitive, and those that have lost their end', async () => {
    const operation = on.operation()
    const window = new FixedWindow(on.primitives, operation)
    await Promise.all(Array.from({ length: 100 }, (_, n) => window.add(`user-${n}`)))
    await on.redis.set(`hf:${owner}:unknown:v1:default:${operation}:{x}`, 'not of a primitive')
    const sampler = new KeySampler(on.primitives, { owner })
    const sampled = async () => (await walk(sampler)).sample
    // One may be counted twice, where others come and go while it walks.
    await expect.poll(sampled, SOON).toEqual({ keys: { window: 100 }, ttlMissing: {} })
    const [first = '', second = ''] = (await on.keys(operation)).filter((key) => key.includes(':window:'))
    await Promise.all([on.redis.persist(first), on.redis.persist(second)])
    await expect.poll(sampled, SOON).toEqual({ keys: { window: 100 }, ttlMissing: { window: 2 } })
    expect(sampler.last).toEqual({ keys: { window: 100 }, ttlMissing: { window: 2 } })
  })

  it('tells what has lost its end from what was to have none', async () => {
    const operation = on.operation()
    const options = { version: 1, fields: { calls: 'u8' } } as const
    await new PackedCounters(on.primitives, operation, { ...options, ttlMs: 60_000 }).increment('user', { calls: 1 })
    const [key = ''] = await on.keys(operation)
    await on.redis.persist(key)
    await new PackedCounters(on.primitives, operation, { ...options, ttlMs: 'none' }).increment('user', { calls: 1 })
    const sampled = async () => {
      const { keys, ttlMissing } = (await walk(new KeySampler(on.primitives, { owner }))).sample
      return [keys.packed, keys['packed-lasting'], ttlMissing.packed, ttlMissing['packed-lasting']]
    }
    await expect.poll(sampled, SOON).toEqual([1, 1, 1, undefined])
  })

  it('leaves room for the calls that somebody waits for', async () => {
    const operation = on.operation()
    const window = new FixedWindow(on.primitives, operation)
    await Promise.all(Array.from({ length: 300 }, (_, n) => window.add(`user-${n}`)))
    const { context } = on.primitives
    let [now, most] = [0, 0]
    const runner: typeof context.runner = {
      async run(...call) {
        now += 1
        most = Math.max(most, now)
        return context.runner.run(...call).finally(() => {
          now -= 1
        })
      },
    }
    const { sample } = await walk(new KeySampler({ context: { ...context, runner } } as Primitives, { owner }))
    expect(sample.keys.window).toBeGreaterThanOrEqual(300)
    expect(most).toBeLessThanOrEqual(8)
  })
})

describe('the sampler', () => {
  it('looks at so many keys a step, also where none of them is ours', async () => {
    const on = await onSingle()
    await Promise.all(Array.from({ length: 5_000 }, (_, n) => on.redis.set(`other:${n}`, 'x')))
    const { steps, sample } = await walk(new KeySampler(on.primitives, { keysPerStep: 1_000 }))
    expect(steps).toBeGreaterThanOrEqual(5)
    expect(sample).toEqual({ keys: {}, ttlMissing: {} })
    const few = await walk(new KeySampler(on.primitives, { keysPerStep: 100 }))
    expect(few.steps).toBeGreaterThanOrEqual(25)
    await on.close()
  })

  it('walks on by itself, and tells what it found as gauges until it is stopped', async () => {
    const gauges = new Map<string, () => number>()
    const on = await onSingle({
      telemetry: {
        gauge(metric, read, labels = {}) {
          const name = `${metric} ${Object.values(labels)}`
          gauges.set(name, read)
          return () => gauges.delete(name)
        },
      },
    })
    await new FixedWindow(on.primitives, 'login').add('user')
    const sampler = new KeySampler(on.primitives, { everyMs: 10 })
    sampler.start()
    sampler.start()
    await expect.poll(() => gauges.get('holdfast_primitive_keys window')?.(), SOON).toBe(1)
    expect(gauges.get('holdfast_primitive_ttl_missing window')?.()).toBe(0)
    sampler.stop()
    expect([...gauges.keys()].filter((name) => name.startsWith('holdfast_primitive'))).toEqual([])
    await on.close()
  })

  it('begins anew after Redis was away', async () => {
    await whileAway(async (primitives) => {
      const sampler = new KeySampler(primitives)
      await expect(sampler.step()).rejects.toMatchObject({ code: 'unavailable' })
      expect(sampler.last).toBeNull()
    })
  })
})

it('rests, and waits, for no longer than a timer can', async () => {
  const on = await onSingle()
  const tooLong = 25 * 24 * 60 * 60 * 1_000
  const refused = expect.objectContaining({ code: 'invalid_argument' })
  expect(() => new KeySampler(on.primitives, { everyMs: tooLong })).toThrow(refused)
  for (const name of ['markerMs', 'loadMaxMs', 'waitMs']) {
    expect(() => new SingleFlight(on.primitives, 'price', { [name]: tooLong })).toThrow(refused)
  }
  await on.close()
})
