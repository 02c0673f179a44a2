import { HoldfastError as OfWallets } from 'holdfast'
import {
  type Cell,
  FixedWindow,
  HoldfastError,
  Idempotency,
  OneTimeTokens,
  Primitives,
  type ShardedCounter,
  StrictSequence,
} from 'holdfast/primitives'
import { Redis } from 'ioredis'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { SECRET } from './support/topologies.js'

/** Nobody listens there. */
const NOWHERE = 'redis://127.0.0.1:1'

describe('Primitives.connect', () => {
  it.each<[string, object, string]>([
    ['no redis', { secret: SECRET }, 'redis: expected a URL, options or an ioredis client, got nothing'],
    ['neither secret nor postgres', { redis: NOWHERE }, 'secret: expected 16 bytes or more, or else a postgres'],
    ['a short secret', { redis: NOWHERE, secret: 'short' }, 'secret: expected 16 to 1024 bytes that nobody can guess'],
    ['a number for a secret', { redis: NOWHERE, secret: 17 }, 'secret: expected a string or bytes, got a number'],
    ['a name with a blank', { redis: NOWHERE, secret: SECRET, owner: 'My app' }, 'owner: expected 1 to 64 characters'],
    ['another URL', { redis: 'http://redis', secret: SECRET }, 'redis: expected a URL like redis://host:6379'],
  ])('refuses %s', async (_, options, message) => {
    await expect(Primitives.connect(options as never)).rejects.toThrow(message)
  })

  it('does not wait for Redis: calls are unavailable, and say where it should be', async () => {
    const primitives = await Primitives.connect({ redis: NOWHERE, secret: SECRET })
    const refused = new FixedWindow(primitives, 'login').add('anna')
    await expect(refused).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('127.0.0.1:1'),
    })
    await primitives.close()
  })

  it('says what needs Postgres where none is given', async () => {
    const primitives = await Primitives.connect({ redis: await freshRedis(), secret: SECRET })
    for (const make of [
      () => new Idempotency(primitives, 'x', { durable: true }),
      () => new StrictSequence(primitives, 'x'),
      () => new OneTimeTokens(primitives, 'x', { audit: true }),
    ]) {
      expect(make).toThrow(/^postgres: expected a connection, since .* is kept there, got none$/)
    }
    await primitives.close()
  })

  it('has the secret of the database unless another is given', async () => {
    const [url, postgres] = [await freshRedis(), await freshDatabase()]
    const [one, same, other] = await Promise.all([
      Primitives.connect({ redis: url, postgres }),
      Primitives.connect({ redis: url, postgres }),
      Primitives.connect({ redis: url, postgres, secret: SECRET }),
    ])
    await new FixedWindow(one, 'login').add('anna')
    expect((await new FixedWindow(same, 'login').peek('anna')).count).toBe(1)
    expect((await new FixedWindow(other, 'login').peek('anna')).count).toBe(0)
    await Promise.all([one, same, other].map((primitives) => primitives.close()))
  })

  it('keeps tenants apart, on the same connections', async () => {
    const primitives = await Primitives.connect({ redis: await freshRedis(), secret: SECRET, tenant: 'acme' })
    const other = primitives.forTenant('bolt')
    await new FixedWindow(primitives, 'login').add('anna')
    expect((await new FixedWindow(other, 'login').peek('anna')).count).toBe(0)
    await other.close()
    await expect(new FixedWindow(primitives, 'login').add('anna')).rejects.toMatchObject({ code: 'unavailable' })
  })

  it('leaves the client open that it was given', async () => {
    const redis = new Redis(await freshRedis())
    const primitives = await Primitives.connect({ redis, secret: SECRET })
    await new FixedWindow(primitives, 'login').add('anna')
    await primitives.close()
    expect(await redis.ping()).toBe('PONG')
    redis.disconnect()
  })

  it('throws the same errors as wallets do', () => {
    expect(HoldfastError).toBe(OfWallets)
  })

  it('has types that ask for an end, and for one alone', () => {
    expectTypeOf<{ ttlMs: 1; windowMs: 1 }>().not.toExtend<ConstructorParameters<typeof ShardedCounter>[2]>()
    expectTypeOf<{ windowMs: 1 }>().toExtend<ConstructorParameters<typeof ShardedCounter>[2]>()
    expectTypeOf<object>().not.toExtend<ConstructorParameters<typeof Cell>[2]>()
  })
})
