import { FixedWindow, type KeySample, KeySampler, SingleFlight } from 'holdfast/primitives'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { whileAway } from './support/away.js'
import { type On, onSingle, TOPOLOGIES } from './support/topologies.js'

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
    expect((await walk(sampler)).sample).toEqual({ keys: { window: 100 }, ttlMissing: {} })
    const [first = '', second = ''] = (await on.keys(operation)).filter((key) => key.includes(':window:'))
    await Promise.all([on.redis.persist(first), on.redis.persist(second)])
    expect((await walk(sampler)).sample).toEqual({ keys: { window: 100 }, ttlMissing: { window: 2 } })
    expect(sampler.last).toEqual({ keys: { window: 100 }, ttlMissing: { window: 2 } })
  })
})

describe('the sampler', () => {
  it('looks at so many keys a step, also where none of them is ours', async () => {
    const on = await onSingle()
    await Promise.all(Array.from({ length: 5_000 }, (_, n) => on.redis.set(`other:${n}`, 'x')))
    const { steps, sample } = await walk(new KeySampler(on.primitives, { keysPerStep: 1_000 }))
    expect(steps).toBeGreaterThanOrEqual(5)
    expect(sample).toEqual({ keys: {}, ttlMissing: {} })
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
    await expect.poll(() => gauges.get('holdfast_primitive_keys window')?.()).toBe(1)
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
