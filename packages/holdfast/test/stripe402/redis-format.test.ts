/** The published format, to the letter: what plain commands wrote is read, and what we write is read with plain commands. */
import { RedisStore } from 'holdfast/stripe402'
import { Cluster, Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freshRedis, sharedCluster } from '../../../../test/servers.js'
import { clientOf, newClientId, newId, transactionOf } from '../../src/stripe402/conformance/subject.js'

const FIELDS = ['clientId', 'stripeCustomerId', 'balance', 'currency', 'createdAt', 'updatedAt']

const KINDS: Record<string, () => Promise<Redis | Cluster>> = {
  'a single server': async () => new Redis(await freshRedis()),
  'a Cluster': async () => new Cluster(await sharedCluster()),
}

describe.each(Object.entries(KINDS))('on %s', (_, connect) => {
  let redis: Redis | Cluster
  let store: RedisStore
  beforeAll(async () => {
    redis = await connect()
    store = new RedisStore(redis)
  })
  afterAll(() => redis.disconnect())

  it('reads a client that plain commands wrote, field by field', async () => {
    const clientId = newClientId()
    await redis.hset(`stripe402:client:${clientId}`, {
      clientId,
      stripeCustomerId: 'cus_abc123',
      balance: '49500',
      currency: 'usd',
      createdAt: '2024-01-15T10:30:00.000Z',
      updatedAt: '2024-01-15T10:31:05.000Z',
    })
    expect(await store.getClient(clientId)).toEqual({
      clientId,
      stripeCustomerId: 'cus_abc123',
      balance: 49_500,
      currency: 'usd',
      createdAt: new Date('2024-01-15T10:30:00.000Z'),
      updatedAt: new Date('2024-01-15T10:31:05.000Z'),
    })
    expect(await store.deductBalance(clientId, 500)).toBe(49_000)
    expect(await store.addBalance(clientId, 1)).toBe(49_001)
  })

  it('reads transactions that plain commands wrote, field by field and in order', async () => {
    const clientId = newClientId()
    const written = [
      {
        id: newId(),
        clientId,
        type: 'topup',
        amount: 50_000,
        stripePaymentIntentId: 'pi_1',
        createdAt: '2024-01-15T10:30:00.000Z',
      },
      {
        id: newId(),
        clientId,
        type: 'deduction',
        amount: 500,
        resource: 'https://api.test/ü',
        createdAt: '2024-01-15T10:31:05.678Z',
      },
    ]
    for (const one of written) {
      await redis.set(`stripe402:txn:${clientId}:${one.id}`, JSON.stringify(one))
      await redis.zadd(`stripe402:txns:${clientId}`, Date.parse(one.createdAt), one.id)
    }
    const expected = written.map((one) => ({ ...one, createdAt: new Date(one.createdAt) }))
    expect(await store.listTransactions(clientId, { order: 'oldest' })).toEqual({ transactions: expected, next: null })
    expect(await store.getTransaction(clientId, expected[1]?.id as string)).toEqual(expected[1])
  })

  it('writes a client as stripe402 does, and nothing else, whatever is done with it', async () => {
    const record = clientOf({ balance: 50_000, updatedAt: new Date('2024-03-01T00:00:00.007Z') })
    const key = `stripe402:client:${record.clientId}`
    await store.createClient(record)
    expect(await redis.hgetall(key)).toEqual({
      clientId: record.clientId,
      stripeCustomerId: 'cus_abc123',
      balance: '50000',
      currency: 'usd',
      createdAt: '2024-01-15T10:30:00.123Z',
      updatedAt: '2024-03-01T00:00:00.007Z',
    })
    await store.deductBalance(record.clientId, 100)
    await store.deductBalance(record.clientId, 100, { key: 'call-1' })
    await store.addBalance(record.clientId, 1_000, { key: 'topup-1' })
    await store.move(transactionOf(record.clientId, 'deduction', 300))
    await store.recordTransaction(transactionOf(record.clientId, 'deduction', 100))
    const held = await redis.hgetall(key)
    expect(Object.keys(held)).toEqual(FIELDS)
    expect(held.balance).toBe('50500')
    expect(held.createdAt).toBe('2024-01-15T10:30:00.123Z')
    expect(new Date(held.updatedAt as string).toISOString()).toBe(held.updatedAt)
    expect(await redis.hincrby(key, 'balance', 5)).toBe(50_505)
    expect(await store.addBalance(record.clientId, 0)).toBe(50_505)
  })

  it('writes transactions as stripe402 does, by either way', async () => {
    const { clientId } = clientOf()
    await store.createClient(clientOf({ clientId, balance: 1_000 }))
    const moved = transactionOf(clientId, 'deduction', 300, { resource: 'https://api.test/a' })
    const recorded = transactionOf(clientId, 'topup', 7, {
      stripePaymentIntentId: 'pi_7',
      createdAt: new Date(1_700_000_000_123),
    })
    await store.move(moved)
    await store.recordTransaction(recorded)
    for (const one of [moved, recorded]) {
      const json = await redis.get(`stripe402:txn:${clientId}:${one.id}`)
      expect(JSON.parse(json as string)).toEqual({ ...one, createdAt: one.createdAt.toISOString() })
      expect(await redis.ttl(`stripe402:txn:${clientId}:${one.id}`)).toBe(-1)
    }
    expect(await redis.call('zrange', `stripe402:txns:${clientId}`, '0', '-1', 'WITHSCORES')).toEqual([
      recorded.id,
      '1700000000123',
      moved.id,
      String(moved.createdAt.getTime()),
    ])
  })

  it('keeps a balance in digits, however large', async () => {
    const { clientId } = clientOf()
    await store.createClient(clientOf({ clientId, balance: Number.MAX_SAFE_INTEGER }))
    await store.deductBalance(clientId, 2)
    expect(await redis.hget(`stripe402:client:${clientId}`, 'balance')).toBe('9007199254740989')
    await store.move(transactionOf(clientId, 'deduction', 8_007_199_254_740_988))
    expect(await redis.hget(`stripe402:client:${clientId}`, 'balance')).toBe('1000000000000001')
  })

  it('works on a client beside software that does it as published', async () => {
    const { clientId } = clientOf()
    await store.createClient(clientOf({ clientId, balance: 100_000 }))
    const key = `stripe402:client:${clientId}`
    // As its documentation describes it: read, compare, set.
    const published = `local b = tonumber(redis.call('HGET', KEYS[1], 'balance') or '0')
      if b < tonumber(ARGV[1]) then return -1 end
      redis.call('HSET', KEYS[1], 'balance', b - tonumber(ARGV[1]), 'updatedAt', ARGV[2])
      return b - tonumber(ARGV[1])`
    await Promise.all(
      Array.from({ length: 100 }, (_, n) =>
        n % 4 === 0
          ? redis.eval(published, 1, key, '100', new Date().toISOString())
          : n % 4 === 1
            ? redis.hincrby(key, 'balance', 30)
            : n % 4 === 2
              ? store.deductBalance(clientId, 7, { key: `${n}` })
              : store.move(transactionOf(clientId, 'topup', 11)),
      ),
    )
    expect((await store.getClient(clientId))?.balance).toBe(100_000 + 25 * (-100 + 30 - 7 + 11))
  })

  it('creates nothing for an unknown client', async () => {
    const clientId = newClientId()
    await store.deductBalance(clientId, 0)
    await store.deductBalance(clientId, 5, { key: 'k' })
    await store.addBalance(clientId, 5).catch(() => {})
    await store.addBalance(clientId, 5, { key: 'k' }).catch(() => {})
    await store.move(transactionOf(clientId, 'topup', 5)).catch(() => {})
    expect(await keysWith(redis, clientId)).toEqual([])
  })

  it('forgets a key when its time is over, and names the time', async () => {
    const { clientId } = clientOf()
    const remembering = new RedisStore(redis, { keyTtlMs: 60_000 })
    await remembering.createClient(clientOf({ clientId, balance: 1_000 }))
    await remembering.deductBalance(clientId, 100, { key: 'call-1' })
    const memory = `hf:stripe402:{stripe402:client:${clientId}}:once:v1:call-1`
    expect(await redis.get(memory)).toBe('-100:900')
    const ttlMs = await redis.pttl(memory)
    expect(ttlMs).toBeGreaterThan(0)
    expect(ttlMs).toBeLessThanOrEqual(60_000)
    // A repetition does not prolong it.
    await redis.pexpire(memory, 30_000)
    await remembering.deductBalance(clientId, 100, { key: 'call-1' })
    expect(await redis.pttl(memory)).toBeLessThanOrEqual(30_000)
    await redis.del(memory)
    expect(await remembering.deductBalance(clientId, 100, { key: 'call-1' })).toBe(800)
  })

  it('leaves nothing behind of transactions that are pruned', async () => {
    // Under a prefix of its own: pruning is for all clients of a store, and other tests have theirs beside these.
    const keyPrefix = `${newId()}:`
    const own = redis instanceof Cluster ? redis.duplicate([], { keyPrefix }) : redis.duplicate({ keyPrefix })
    const pruning = new RedisStore(own)
    const { clientId } = clientOf()
    await pruning.createClient(clientOf({ clientId, balance: 1_000 }))
    for (let n = 0; n < 120; n += 1) {
      const old = transactionOf(clientId, 'deduction', 1, { createdAt: new Date('2001-01-01T00:00:00.000Z') })
      if (n % 2 === 0) await pruning.move(old)
      else await pruning.recordTransaction(old)
    }
    expect(await pruning.pruneTransactions({ olderThan: new Date('2001-01-01T00:00:00.000Z') })).toBe(0)
    expect(await pruning.pruneTransactions({ olderThan: new Date('2001-01-01T00:00:00.001Z') })).toBe(120)
    expect(await keysWith(redis, clientId)).toEqual([`${keyPrefix}stripe402:client:${clientId}`])
    own.disconnect()
  })
})

describe('ids with braces, which take part in choosing a node', () => {
  it.each([[false], [true]])('are as good as others on a Cluster (tagged: %s)', async (tagged) => {
    const redis = new Cluster(await sharedCluster(), { keyPrefix: `${newId()}:` })
    const store = new RedisStore(redis, { tagged })
    // The first two share a tag, and must share nothing else.
    const ids = ['{tag}one', '{tag}two', 'a{b', '{', '{c}{d}']
    for (const [n, clientId] of ids.entries()) {
      await store.createClient(clientOf({ clientId, balance: 1_000 }))
      expect(await store.deductBalance(clientId, 100 + n, { key: 'same' }), clientId).toBe(900 - n)
      expect(await store.move(transactionOf(clientId, 'deduction', 10 + n, { id: 'same' })), clientId).toBe(890 - 2 * n)
      expect((await store.listTransactions(clientId)).transactions, clientId).toHaveLength(1)
    }
    const listed: string[] = []
    for await (const { clientId } of store.listClients()) listed.push(clientId)
    expect(listed.sort()).toEqual([...ids].sort())
    expect(await store.pruneTransactions({ olderThan: new Date() })).toBe(ids.length)
    redis.disconnect()
  })

  it.each([[false], [true]])(
    'share no memory on a single server, whatever they look like (tagged: %s)',
    async (tagged) => {
      const redis = new Redis(await freshRedis())
      const store = new RedisStore(redis, { tagged })
      // Each is written so that what belongs to it could be taken for what belongs to another.
      const ids = ['a', 'a}', 'a}:once:v1:x', 'a}:moves:v1', '}', '{}', '{}:3:a}', 'stripe402:client:a}:once:v1:x']
      const keys = ['k', 'x}:once:v1:k', 'x}:moves:v1', '3:a}:once:v1:k', 'x}:13:a}:once:v1:x:once:v1:k']
      for (const [n, clientId] of ids.entries()) await store.createClient(clientOf({ clientId, balance: 1_000 + n }))
      for (const [n, clientId] of ids.entries()) {
        for (const [k, key] of keys.entries()) {
          expect(await store.deductBalance(clientId, 1, { key }), `${clientId} ${key}`).toBe(999 + n - k)
        }
        expect(await store.move(transactionOf(clientId, 'topup', 5, { id: 'same' })), clientId).toBe(
          1_005 + n - keys.length,
        )
        expect((await store.getClient(clientId))?.balance).toBe(1_005 + n - keys.length)
      }
      redis.disconnect()
    },
  )

  it('are refused with a word where no key could lie beside the client', async () => {
    const redis = new Cluster(await sharedCluster())
    const store = new RedisStore(redis)
    await expect(store.deductBalance('a}b', 1, { key: 'k' })).rejects.toMatchObject({ code: 'invalid_argument' })
    await expect(store.move(transactionOf('a}b', 'topup', 1))).rejects.toMatchObject({ code: 'invalid_argument' })
    redis.disconnect()
  })
})

describe('tagged keys', () => {
  it('lie in one slot each client, and no other store takes them for its own', async () => {
    const redis = new Cluster(await sharedCluster())
    const tagged = new RedisStore(redis, { tagged: true })
    const { clientId } = clientOf()
    await tagged.createClient(clientOf({ clientId, balance: 1_000 }))
    await tagged.deductBalance(clientId, 1, { key: 'k' })
    await tagged.move(transactionOf(clientId, 'topup', 5))
    const keys = await keysWith(redis, clientId)
    expect(keys.length).toBe(5)
    const slots = await Promise.all(keys.map((key) => redis.cluster('KEYSLOT', key)))
    expect(new Set(slots).size).toBe(1)
    expect(await new RedisStore(redis).getClient(clientId)).toBeNull()
    redis.disconnect()
  })
})

async function keysWith(redis: Redis | Cluster, part: string): Promise<string[]> {
  const nodes = redis instanceof Cluster ? redis.nodes('master') : [redis]
  const keys = await Promise.all(nodes.map((node) => node.keys(`*${part}*`)))
  return keys.flat().sort()
}
