import { getEventListeners } from 'node:events'
import { BloomFilter, FeatureFlags, KeySampler, Leases, Primitives, SingleFlight } from 'holdfast/primitives'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../../test/servers.js'
import { PATIENT } from './support/patient.js'
import { counting, holding } from './support/runners.js'
import { type On, onSingle, SECRET } from './support/topologies.js'

/** What primitives that go on by themselves leave behind, and what ends with the connections. */
describe('what goes on by itself', () => {
  let on: On
  beforeAll(async () => {
    on = await onSingle({ postgres: await freshDatabase() })
  })
  afterAll(() => on.close())

  it('leaves nothing behind in the connections when it is over, however many were made', async () => {
    const { closing, held } = on.primitives.context
    for (let n = 0; n < 50; n += 1) {
      const leases = new Leases(on.primitives, 'send')
      const flight = new SingleFlight(on.primitives, 'price')
      const flags = new FeatureFlags(on.primitives)
      await flags.ready()
      await leases.using(`invoice-${n}`, () => flight.get(`sku-${n}`, () => n))
      flags.close()
    }
    expect(getEventListeners(closing, 'abort')).toEqual([])
    expect(held.size).toBe(0)
  })

  it('is lost when the connections are closed, also what was being taken just then', async () => {
    const primitives = await Primitives.connect({ redis: on.redis, secret: SECRET, ...PATIENT })
    const { primitives: slow, isHeld, letGo } = holding(primitives, 'lease_take')
    const taking = new Leases(slow, 'send').acquire('a')
    await isHeld
    await primitives.close()
    letGo()
    await expect(taking).rejects.toMatchObject({ code: 'unavailable' })
    expect(primitives.context.held.size).toBe(0)
  })

  it('is not begun when the connections are closed', async () => {
    const primitives = await Primitives.connect({ redis: on.redis, secret: SECRET, ...PATIENT })
    const { primitives: slow, isHeld, letGo } = holding(primitives, 'flight_get')
    let loads = 0
    const getting = new SingleFlight(slow, 'price').get('a', () => {
      loads += 1
      return loads
    })
    await isHeld
    await primitives.close()
    letGo()
    await expect(getting).rejects.toMatchObject({ code: 'unavailable' })
    expect(loads).toBe(0)
  })

  it('looks and walks no more when the connections are closed, and says nothing of it', async () => {
    const logged: string[] = []
    const gauges = new Set<string>()
    const primitives = await Primitives.connect({
      redis: on.redis,
      secret: SECRET,
      ...PATIENT,
      telemetry: {
        log: (_, event) => void logged.push(event),
        gauge(metric, _, labels = {}) {
          const id = [metric, ...Object.values(labels)].join()
          gauges.add(id)
          return () => void gauges.delete(id)
        },
      },
    })
    const { primitives: counted, counts } = counting(primitives)
    const filter = new BloomFilter(counted, 'sold', { capacity: 10, falsePositives: 0.01 })
    await filter.begin()
    const mirror = filter.mirror({ everyMs: 10 })
    const sampler = new KeySampler(counted, { everyMs: 10 })
    sampler.start()
    await expect.poll(() => counts.bloom_news ?? 0, { timeout: 20_000 }).toBeGreaterThan(2)
    await expect.poll(() => sampler.last, { timeout: 20_000 }).not.toBeNull()
    await primitives.close()
    // Each has an eternity to try again.
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(logged).toEqual([])
    expect([...gauges]).toEqual([])
    mirror.close()
    sampler.stop()
  })
})
