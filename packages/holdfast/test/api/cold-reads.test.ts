import { Redis } from 'ioredis'
import { expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { Holdfast } from '../../src/index.js'

it('brings no wallet into Redis that is only read, however it is', async () => {
  const [redisUrl, postgres] = [await freshRedis(), await freshDatabase()]
  const hf = await Holdfast.connect({ redis: redisUrl, postgres, audit: false })
  const wallet = hf.wallet('w')
  await wallet.open({ currency: 'usd' })
  await wallet.credit(100, { key: 'in' })
  const hold = await wallet.hold(40, { key: 'h', ttl: 3_600_000 })
  const redis = new Redis(redisUrl)
  expect(await redis.keys('*:wallet:*')).toHaveLength(1)
  await redis.flushdb()

  expect(await wallet.get()).toMatchObject({ available: 60, reserved: 40 })
  expect(await wallet.holds()).toHaveLength(1)
  expect(await wallet.holds({ pending: true })).toHaveLength(1)
  expect(await hold.get()).toMatchObject({ status: 'open' })
  expect(await hold.explain()).toMatchObject({ hold: { left: 40 } })
  expect(await wallet.entries()).toHaveLength(2)
  expect(await wallet.entry('in')).toMatchObject({ seq: 1 })
  expect(await wallet.at({ seq: 1 })).toMatchObject({ available: 100 })
  expect(await redis.keys('*:wallet:*')).toEqual([])
  redis.disconnect()
  await hf.close()
})
