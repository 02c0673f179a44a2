import { getEventListeners } from 'node:events'
import { FeatureFlags, Leases, Primitives, SingleFlight } from 'holdfast/primitives'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../../test/servers.js'
import { holding } from './support/runners.js'
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
    const primitives = await Primitives.connect({ redis: on.redis, secret: SECRET })
    const { primitives: slow, isHeld, letGo } = holding(primitives, 'lease_take')
    const taking = new Leases(slow, 'send').acquire('a')
    await isHeld
    await primitives.close()
    letGo()
    await expect(taking).rejects.toMatchObject({ code: 'unavailable' })
    expect(primitives.context.held.size).toBe(0)
  })

  it('is not begun when the connections are closed', async () => {
    const primitives = await Primitives.connect({ redis: on.redis, secret: SECRET })
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
})
