/** What older software, or a hand, has left in the database: reported, and never made worse. */
import { HoldfastError } from 'holdfast'
import { RedisStore } from 'holdfast/stripe402'
import { Cluster, Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freshRedis, sharedCluster } from '../../../../test/servers.js'
import { clientOf, newClientId, newId, transactionOf } from '../../src/stripe402/conformance/subject.js'

const SOUND = {
  stripeCustomerId: 'cus_abc123',
  balance: '49500',
  currency: 'usd',
  createdAt: '2024-01-15T10:30:00.000Z',
  updatedAt: '2024-01-15T10:31:05.000Z',
}
const BAD_BALANCES = [
  '49.5',
  '1e+15',
  '9007199254740992',
  '12345678901234567890',
  '-0',
  '007',
  '+5',
  ' 5',
  '0x10',
  'NaN',
  'inf',
  '',
]

/** Under a prefix of its own: others walk over all that a store has, and shall not meet what is damaged here. */
const ownCluster = async () => new Cluster(await sharedCluster(), { keyPrefix: `${newId()}:` })

const KINDS: Record<string, () => Promise<Redis | Cluster>> = {
  'a single server': async () => new Redis(await freshRedis()),
  'a Cluster': () => ownCluster(),
}

describe.each(Object.entries(KINDS))('on %s', (_, connect) => {
  let redis: Redis | Cluster
  let store: RedisStore
  beforeAll(async () => {
    redis = await connect()
    store = new RedisStore(redis)
  })
  afterAll(() => redis.disconnect())

  const keyOf = (clientId: string) => `stripe402:client:${clientId}`
  const write = async (fields: Record<string, string>, clientId = newClientId()) => {
    await redis.hset(keyOf(clientId), { clientId, ...SOUND, ...fields })
    return clientId
  }
  /** Every way to change a balance is refused, and not a byte of the hash is another one. */
  const expectUnchanged = async (clientId: string) => {
    const before = await redis.dumpBuffer(keyOf(clientId))
    for (const change of [
      () => store.deductBalance(clientId, 1),
      () => store.deductBalance(clientId, 0),
      () => store.addBalance(clientId, 1),
      () => store.deductBalance(clientId, 1, { key: 'k' }),
      () => store.addBalance(clientId, 1, { key: 'k' }),
      () => store.move(transactionOf(clientId, 'topup', 1)),
      () => store.move(transactionOf(clientId, 'deduction', 1)),
    ]) {
      await expect(change()).rejects.toMatchObject({ code: 'client_damaged' })
    }
    expect(await redis.dumpBuffer(keyOf(clientId))).toEqual(before)
    expect(await store.listTransactions(clientId)).toEqual({ transactions: [], next: null })
  }

  it.each(BAD_BALANCES)('a balance of "%s" is reported', async (balance) => {
    const clientId = await write({ balance })
    await expect(store.getClient(clientId)).rejects.toMatchObject({
      code: 'client_damaged',
      message: expect.stringMatching(/^client [0-9a-f]{8}…, balance: expected an integer/),
    })
    await expectUnchanged(clientId)
  })

  it('a balance that is missing is reported', async () => {
    const clientId = await write({})
    await redis.hdel(keyOf(clientId), 'balance')
    await expect(store.getClient(clientId)).rejects.toMatchObject({ code: 'client_damaged' })
    await expectUnchanged(clientId)
  })

  it.each(['stripeCustomerId', 'currency', 'createdAt', 'updatedAt'])(
    'a client without %s is reported',
    async (field) => {
      const clientId = await write({})
      await redis.hdel(keyOf(clientId), field)
      await expect(store.getClient(clientId)).rejects.toMatchObject({
        code: 'client_damaged',
        message: expect.stringContaining(field),
      })
      // Its money is not in doubt.
      expect(await store.deductBalance(clientId, 500)).toBe(49_000)
    },
  )

  it.each(['yesterday', '2024-13-45T99:00:00.000Z', '1705314600000'])(
    'a date of "%s" is reported',
    async (createdAt) => {
      const clientId = await write({ createdAt })
      await expect(store.getClient(clientId)).rejects.toMatchObject({ code: 'client_damaged' })
    },
  )

  it('a client under the key of another is reported', async () => {
    const clientId = newClientId()
    await redis.hset(keyOf(clientId), { clientId: newClientId(), ...SOUND })
    await expect(store.getClient(clientId)).rejects.toMatchObject({ code: 'client_damaged' })
  })

  it('a balance below zero is read as it is, can be topped up, and not be spent', async () => {
    const clientId = await write({ balance: '-500' })
    expect((await store.getClient(clientId))?.balance).toBe(-500)
    expect(await store.deductBalance(clientId, 1)).toBeNull()
    expect(await store.deductBalance(clientId, 0)).toBeNull()
    expect(await store.addBalance(clientId, 200)).toBe(-300)
    expect(await store.move(transactionOf(clientId, 'topup', 400))).toBe(100)
  })

  it('a hash without clientId reads as null, and can be neither spent nor topped up', async () => {
    const clientId = newClientId()
    await redis.hset(keyOf(clientId), { balance: '5000', updatedAt: SOUND.updatedAt })
    const before = await redis.dumpBuffer(keyOf(clientId))
    expect(await store.getClient(clientId)).toBeNull()
    expect(await store.deductBalance(clientId, 1)).toBeNull()
    await expect(store.addBalance(clientId, 1)).rejects.toMatchObject({ code: 'client_not_found' })
    await expect(store.move(transactionOf(clientId, 'deduction', 1))).rejects.toMatchObject({
      code: 'client_not_found',
    })
    // Somebody's money: to write over it would lose it, to take it over would be a guess.
    await expect(store.createClient(clientOf({ clientId }))).rejects.toMatchObject({ code: 'client_damaged' })
    expect(await redis.dumpBuffer(keyOf(clientId))).toEqual(before)
  })

  it('an empty ghost gives way to the client', async () => {
    const record = clientOf({ balance: 700 })
    await redis.hset(keyOf(record.clientId), { balance: '0', updatedAt: SOUND.updatedAt })
    await store.createClient(record)
    expect(await store.getClient(record.clientId)).toEqual(record)
  })

  it('something else under the key of a client is reported and stays', async () => {
    const clientId = newClientId()
    await redis.set(keyOf(clientId), 'not a hash')
    await expect(store.getClient(clientId)).rejects.toMatchObject({ code: 'client_damaged' })
    await expect(store.createClient(clientOf({ clientId }))).rejects.toMatchObject({ code: 'client_damaged' })
    await expectUnchanged(clientId)
  })

  it('one damaged client does not harm those beside it in a call', async () => {
    const [sound, damaged, text] = [await write({}), await write({ balance: '1.5' }), newClientId()]
    await redis.set(keyOf(text), 'not a hash')
    const outcomes = await Promise.allSettled([
      store.deductBalance(damaged, 1),
      store.deductBalance(sound, 100),
      store.deductBalance(text, 1),
      store.deductBalance(sound, 100),
      store.deductBalance(damaged, 1, { key: 'k' }),
      store.deductBalance(sound, 100, { key: 'k' }),
    ])
    expect(outcomes.map(({ status }) => status)).toEqual([
      'rejected',
      'fulfilled',
      'rejected',
      'fulfilled',
      'rejected',
      'fulfilled',
    ])
    expect((await store.getClient(sound))?.balance).toBe(49_200)
  })

  it('a walk over the clients reports the damaged, and shows all others', async () => {
    const sound = await write({})
    const damaged = [await write({ balance: '1.5' }), newClientId(), newClientId()]
    await redis.hset(keyOf(damaged[1] as string), { balance: '5000' })
    await redis.set(keyOf(damaged[2] as string), 'not a hash')
    const listed: string[] = []
    const reported: Error[] = []
    for await (const { clientId } of store.listClients({ onDamaged: (error) => reported.push(error) }))
      listed.push(clientId)
    expect(listed).toContain(sound)
    const named = reported.map((error) => (error as HoldfastError).client)
    for (const clientId of damaged) {
      expect(listed).not.toContain(clientId)
      expect(named).toContain(`${clientId.slice(0, 8)}…`)
    }
    const walk = async () => {
      const all: string[] = []
      for await (const { clientId } of store.listClients()) all.push(clientId)
      return all
    }
    await expect(walk()).rejects.toMatchObject({ code: 'client_damaged', count: expect.any(Number) })
  })

  it.each([
    ['no JSON', 'not json'],
    ['no object', '7'],
    ['no amount', '{"id":"ID","clientId":"CLIENT","type":"topup","createdAt":"2024-01-15T10:30:00.000Z"}'],
    [
      'a fraction',
      '{"id":"ID","clientId":"CLIENT","type":"topup","amount":0.5,"createdAt":"2024-01-15T10:30:00.000Z"}',
    ],
    [
      'a type that is none',
      '{"id":"ID","clientId":"CLIENT","type":"gift","amount":5,"createdAt":"2024-01-15T10:30:00.000Z"}',
    ],
    ['no date', '{"id":"ID","clientId":"CLIENT","type":"topup","amount":5,"createdAt":"soon"}'],
    [
      'the ids of others',
      '{"id":"ID","clientId":"x","type":"topup","amount":5,"createdAt":"2024-01-15T10:30:00.000Z"}',
    ],
  ])('a transaction with %s is reported, and the others are read', async (_name, json) => {
    const clientId = await write({})
    const id = newId()
    await redis.set(`stripe402:txn:${clientId}:${id}`, json.replace('CLIENT', clientId).replace('ID', id))
    await redis.zadd(`stripe402:txns:${clientId}`, 1_705_314_600_000, id)
    const sound = transactionOf(clientId, 'topup', 5)
    await store.recordTransaction(sound)
    await expect(store.getTransaction(clientId, id)).rejects.toMatchObject({ code: 'client_damaged' })
    await expect(store.listTransactions(clientId)).rejects.toMatchObject({ code: 'client_damaged' })
    const reported: Error[] = []
    const { transactions } = await store.listTransactions(clientId, { onDamaged: (error) => reported.push(error) })
    expect(transactions).toEqual([sound])
    expect(reported).toHaveLength(1)
    await expect(store.move(transactionOf(clientId, 'topup', 5, { id }))).rejects.toBeInstanceOf(HoldfastError)
    expect((await store.getClient(clientId))?.balance).toBe(49_500)
  })

  it('an index entry without its record is reported', async () => {
    const clientId = newClientId()
    await redis.zadd(`stripe402:txns:${clientId}`, 1, 'gone')
    await expect(store.listTransactions(clientId)).rejects.toMatchObject({ code: 'client_damaged' })
  })

  it('an index with times that no Date can be is read page by page all the same', async () => {
    const clientId = newClientId()
    const index = `stripe402:txns:${clientId}`
    await redis.zadd(index, '-inf', 'a', 0.000_000_1, 'b', 1e300, 'd', '+inf', 'e', '+inf', 'f')
    const sound = transactionOf(clientId, 'topup', 5, { id: 'c' })
    await store.recordTransaction(sound)
    for (const order of ['oldest', 'newest'] as const) {
      const damaged: Error[] = []
      const found: string[] = []
      for (let after: string | null | undefined; after !== null; ) {
        const onDamaged = (error: Error) => void damaged.push(error)
        const page = await store.listTransactions(clientId, { order, limit: 1, onDamaged, ...(after && { after }) })
        found.push(...page.transactions.map(({ id }) => id))
        after = page.next
      }
      expect([found, damaged.length]).toEqual([['c'], 5])
    }
  })

  it('a record that older software died before indexing is indexed when it is recorded again', async () => {
    const one = transactionOf(newClientId(), 'topup', 5)
    await redis.set(`stripe402:txn:${one.clientId}:${one.id}`, JSON.stringify({ ...one, note: 'of others' }))
    expect(await store.listTransactions(one.clientId)).toEqual({ transactions: [], next: null })
    await store.recordTransaction({ ...one, createdAt: new Date() })
    expect(await store.listTransactions(one.clientId)).toEqual({ transactions: [one], next: null })
  })

  it('and when it is moved', async () => {
    const clientId = await write({})
    const one = transactionOf(clientId, 'topup', 5)
    await redis.set(`stripe402:txn:${clientId}:${one.id}`, JSON.stringify(one))
    expect(await store.move(one)).toBe(49_500)
    expect(await store.listTransactions(clientId)).toEqual({ transactions: [one], next: null })
  })

  it.each([
    ['the transaction', (clientId: string, id: string) => redis.hset(`stripe402:txn:${clientId}:${id}`, 'a', 'b')],
    [
      'what moves remember',
      (clientId: string) =>
        redis.set(`hf:stripe402:{${redis.options.keyPrefix ?? ''}${keyOf(clientId)}}:moves:v1`, 'x'),
    ],
  ])('a move whose key of %s holds something else changes nothing', async (_name, damage) => {
    const clientId = await write({})
    const moved = transactionOf(clientId, 'deduction', 100)
    await damage(clientId, moved.id)
    const before = await redis.dumpBuffer(keyOf(clientId))
    await expect(store.move(moved)).rejects.toMatchObject({ code: 'client_damaged' })
    expect(await redis.dumpBuffer(keyOf(clientId))).toEqual(before)
  })

  it('what remembers a key and holds something else is reported, and nothing changes', async () => {
    const clientId = await write({})
    await redis.set(`hf:stripe402:{${redis.options.keyPrefix ?? ''}${keyOf(clientId)}}:once:v1:k`, 'something else')
    await expect(store.deductBalance(clientId, 1, { key: 'k' })).rejects.toMatchObject({ code: 'client_damaged' })
    expect((await store.getClient(clientId))?.balance).toBe(49_500)
  })

  it('ids that would share a key do not share a transaction', async () => {
    const [one, other] = ['a', 'a:b'].map((part) => `${part}-${newId()}`) as [string, string]
    const prefix = newClientId()
    const first = transactionOf(`${prefix}:${one}`, 'topup', 5, { id: other })
    await store.recordTransaction(first)
    const second = transactionOf(prefix, 'topup', 5, { id: `${one}:${other}` })
    expect(await store.getTransaction(prefix, second.id)).toBeNull()
    await expect(store.recordTransaction(second)).rejects.toMatchObject({ code: 'idempotency_conflict' })
    expect(await store.getTransaction(first.clientId, first.id)).toEqual(first)
  })
})

it('an index of another type: a move on a single server changes nothing', async () => {
  const redis = new Redis(await freshRedis())
  const store = new RedisStore(redis)
  const record = clientOf({ balance: 1_000 })
  await store.createClient(record)
  await redis.set(`stripe402:txns:${record.clientId}`, 'not a sorted set')
  await expect(store.move(transactionOf(record.clientId, 'deduction', 1))).rejects.toMatchObject({
    code: 'client_damaged',
  })
  await expect(store.recordTransaction(transactionOf(record.clientId, 'topup', 1))).rejects.toMatchObject({
    code: 'client_damaged',
  })
  expect(await store.getClient(record.clientId)).toEqual(record)
  expect(await redis.keys(`*${record.clientId}*`)).toHaveLength(2)
  redis.disconnect()
})

it('pruning goes on past a client that is damaged, and tells of it', async () => {
  const redis = new Redis(await freshRedis())
  const store = new RedisStore(redis)
  const createdAt = new Date('2001-01-01T00:00:00.000Z')
  const clients = Array.from({ length: 20 }, newClientId)
  for (const clientId of clients) await store.recordTransaction(transactionOf(clientId, 'topup', 1, { createdAt }))
  const damaged = newClientId()
  await redis.set(`stripe402:txns:${damaged}`, 'not a sorted set')
  await expect(store.pruneTransactions({ olderThan: new Date() })).rejects.toMatchObject({
    code: 'client_damaged',
    client: `${damaged.slice(0, 8)}…`,
    removed: 20,
  })
  expect(await redis.keys('*')).toEqual([`stripe402:txns:${damaged}`])
  redis.disconnect()
})

it('on a Cluster, a transaction that can not be filed does not hide the others', async () => {
  const redis = await ownCluster()
  const store = new RedisStore(redis)
  const { clientId } = clientOf()
  await store.createClient(clientOf({ clientId, balance: 1_000 }))
  const [sound, stuck] = [transactionOf(clientId, 'topup', 1), transactionOf(clientId, 'topup', 2)]
  await store.move(sound)
  const pending = `hf:stripe402:{${redis.options.keyPrefix}stripe402:client:${clientId}}:pending:v1`
  await redis.hset(pending, stuck.id, `${Date.now()}+${JSON.stringify(stuck)}`)
  await redis.hset(`stripe402:txn:${clientId}:${stuck.id}`, 'not', 'a string')
  await expect(store.listTransactions(clientId)).rejects.toMatchObject({ code: 'client_damaged' })
  const reported: Error[] = []
  const { transactions } = await store.listTransactions(clientId, { onDamaged: (error) => reported.push(error) })
  expect(transactions).toEqual([sound])
  expect(reported).toHaveLength(1)
  expect(await store.getTransaction(clientId, newId())).toBeNull()
  // And it is not forgotten.
  expect(await redis.hlen(pending)).toBe(1)
  redis.disconnect()
})

it('the constructor takes a client, and options that are some', () => {
  const bad = (make: () => unknown) => expect(make).toThrow(expect.objectContaining({ code: 'invalid_argument' }))
  bad(() => new RedisStore('redis://127.0.0.1' as never))
  bad(() => new RedisStore(undefined as never))
  const redis = new Redis({ lazyConnect: true })
  bad(() => new RedisStore(redis, { keyTtlMs: 0 }))
  bad(() => new RedisStore(redis, { tagged: 'yes' as never }))
})
