import { describe, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { Holdfast, Postgres, RedisConnection } from '../../src/index.js'
import { refusal } from './support/paths.js'

describe('the wallets of a tenant', () => {
  it('are listed by the bytes of their ids, in pages, from anywhere, by how they begin', async () => {
    const hf = await Holdfast.connect({ redis: await freshRedis(), postgres: await freshDatabase() })
    const ids = ['b', 'B', 'ab', 'a', 'é', '\u{10ffff}', '\u{10ffff}'.repeat(2), '%', 'a_b']
    for (const id of ids) await hf.wallet(id).open({ currency: 'usd', metadata: { id } })
    await hf.forTenant('other').wallet('a').open({ currency: 'eur' })
    const listed = async (options: Parameters<Holdfast['wallets']>[0]) =>
      (await hf.wallets(options)).map(({ id }) => id)

    const sorted = ids.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    expect(await listed({})).toEqual(sorted)
    expect(await listed({ limit: 2 })).toEqual(sorted.slice(0, 2))
    expect(await listed({ limit: 2, after: sorted[1] as string })).toEqual(sorted.slice(2, 4))
    expect(await listed({ after: 'aa' })).toEqual(sorted.slice(sorted.indexOf('ab')))
    expect(await listed({ prefix: 'a' })).toEqual(['a', 'a_b', 'ab'])
    expect(await listed({ prefix: 'a', after: 'a_b' })).toEqual(['ab'])
    expect(await listed({ prefix: '\u{10ffff}' })).toEqual(['\u{10ffff}', '\u{10ffff}'.repeat(2)])
    expect(await listed({ prefix: '%' })).toEqual(['%'])
    expect(await listed({ prefix: 'none' })).toEqual([])
    expect(await hf.wallets({ prefix: 'ab' })).toEqual([await hf.wallet('ab').get()])
    expect(await hf.forTenant('other').wallets()).toMatchObject([{ id: 'a', currency: 'eur' }])

    for (const wrong of [{ limit: 0 }, { limit: 1_001 }, { after: '' }, { prefix: 'a\0' }, { after: 1 as never }]) {
      expect(await refusal(hf.wallets(wrong))).toMatchObject({ code: 'invalid_argument' })
    }
    await hf.close()
  })
})

describe('connections that were made already', () => {
  it('are used, and left open', async () => {
    const redis = new RedisConnection(await freshRedis())
    const postgres = new Postgres(await freshDatabase())
    for (let round = 0; round < 2; round += 1) {
      const hf = await Holdfast.connect({ redis, postgres, migrate: false })
      await hf.wallet('w').open({ currency: 'usd' })
      expect((await hf.wallet('w').credit(5, { key: `c${round}` })).available).toBe(5 * (round + 1))
      await hf.close()
    }
    await Promise.all([redis.ping(), postgres.ping()])
    await Promise.all([redis.close(), postgres.close()])
  })
})
