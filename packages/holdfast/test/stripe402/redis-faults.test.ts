/** Lost replies, servers that forget their scripts, and a Redis that is away: on clients with the settings that ioredis has by itself. */
import { startRedis } from '@holdfast/services'
import { RedisStore } from 'holdfast/stripe402'
import { Cluster, Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClusterTarget } from '../../src/redis/client.js'
import {
  stripe402Change,
  stripe402ChangeOnce,
  stripe402Create,
  stripe402Move,
  stripe402MoveApart,
} from '../../src/redis/scripts.generated.js'
import { clientOf, transactionOf } from '../../src/stripe402/conformance/subject.js'
import { TOPOLOGIES, type Topology } from '../redis/support/topologies.js'

describe.each(['single', 'cluster'] as const)('on %s', (kind) => {
  let topology: Topology
  let redis: Redis | Cluster
  let store: RedisStore
  beforeAll(async () => {
    topology = await TOPOLOGIES[kind]()
    const { target } = topology
    const { cluster, options } = target as ClusterTarget
    redis = kind === 'single' ? new Redis(target as string) : new Cluster([...cluster], options as object)
    redis.on('error', () => {})
    store = new RedisStore(redis)
  })
  afterAll(async () => {
    redis.disconnect()
    await topology.stop()
  })

  const newClient = async (balance: number) => {
    const record = clientOf({ balance })
    await store.createClient(record)
    // Scripts are known from here on: what is cut is the call itself.
    await store.deductBalance(record.clientId, 0)
    await store.deductBalance(record.clientId, 0, { key: 'warm' })
    await store.move(transactionOf(record.clientId, 'topup', 0))
    return record.clientId
  }
  /** The answer to the next call of this does not arrive. */
  const loseReplyTo = (command: string) => Promise.race(topology.proxies.map((proxy) => proxy.cutReplyTo(command)))
  const behave = () => {
    for (const proxy of topology.proxies) proxy.behave()
  }

  it('ioredis by itself does a plain command twice when its reply is lost', async () => {
    const clientId = await newClient(1_000)
    const lost = loseReplyTo('hincrby')
    await redis.hincrby(`stripe402:client:${clientId}`, 'balance', -100)
    await lost
    behave()
    expect((await store.getClient(clientId))?.balance).toBe(800)
  })

  it('a change without a key whose reply is lost was done once, and its caller is told that nobody knows', async () => {
    const clientId = await newClient(1_000)
    const lost = loseReplyTo(stripe402Change.sha1)
    await expect(store.deductBalance(clientId, 100)).rejects.toMatchObject({
      code: 'unavailable',
      outcome: 'unknown',
      retryable: true,
    })
    await lost
    behave()
    expect((await store.getClient(clientId))?.balance).toBe(900)
    expect(await store.deductBalance(clientId, 100)).toBe(800)
  })

  it('a change with a key whose reply is lost is answered all the same, and was done once', async () => {
    const clientId = await newClient(1_000)
    const lost = loseReplyTo(stripe402ChangeOnce.sha1)
    expect(await store.deductBalance(clientId, 100, { key: 'call-1' })).toBe(900)
    await lost
    behave()
    expect((await store.getClient(clientId))?.balance).toBe(900)
  })

  it('a move whose reply is lost is answered all the same, and was done once', async () => {
    const clientId = await newClient(1_000)
    const lost = loseReplyTo(kind === 'single' ? stripe402Move.sha1 : stripe402MoveApart.sha1)
    const moved = transactionOf(clientId, 'deduction', 100)
    expect(await store.move(moved)).toBe(900)
    await lost
    behave()
    expect((await store.getClient(clientId))?.balance).toBe(900)
    expect((await store.listTransactions(clientId)).transactions).toContainEqual(moved)
  })

  it('a client whose creation ran twice is created once', async () => {
    await newClient(0)
    const lost = loseReplyTo(stripe402Create.sha1)
    const record = clientOf({ balance: 500 })
    await store.createClient(record)
    await lost
    behave()
    expect(await store.getClient(record.clientId)).toEqual(record)
  })

  it('servers that forget all scripts are told them again', async () => {
    const clientId = await newClient(1_000)
    await topology.flushScripts()
    expect(await store.deductBalance(clientId, 100)).toBe(900)
    await topology.flushScripts()
    const balances = await Promise.all(Array.from({ length: 130 }, () => store.deductBalance(clientId, 1)))
    expect(balances.sort((a, b) => Number(b) - Number(a))).toEqual(Array.from({ length: 130 }, (_, n) => 899 - n))
    await topology.flushScripts()
    expect(await store.move(transactionOf(clientId, 'topup', 5))).toBe(775)
  })

  it('the store leaves the client to its owner', async () => {
    expect(redis.status).toBe('ready')
    expect(redis.listenerCount('error')).toBe(1)
  })
})

describe('a server that refuses to write', () => {
  it.each([
    ['because its memory is full', (owner: Redis) => owner.config('SET', 'maxmemory', '1'), 'OOM'],
    ['because it is a replica', (owner: Redis) => owner.replicaof('127.0.0.1', 1), 'READONLY'],
  ])('%s is no damage, and nothing has changed', async (_, refuse, reason) => {
    const server = await startRedis({ source: 'installed' })
    const redis = new Redis(server.url)
    const store = new RedisStore(redis)
    const record = clientOf({ balance: 1_000 })
    await store.createClient(record)
    await refuse(redis)
    for (const call of [
      () => store.deductBalance(record.clientId, 1),
      () => store.addBalance(record.clientId, 1, { key: 'k' }),
      () => store.createClient(clientOf()),
      () => store.move(transactionOf(record.clientId, 'topup', 1)),
      () => store.recordTransaction(transactionOf(record.clientId, 'topup', 1)),
    ]) {
      await expect(call()).rejects.toMatchObject({
        code: 'unavailable',
        outcome: 'not_executed',
        message: expect.stringContaining(reason),
      })
    }
    expect(await store.getClient(record.clientId)).toEqual(record)
    expect(await redis.dbsize()).toBe(1)
    redis.disconnect()
    await server.stop()
  })
})

describe('a walk over the clients while another server takes over', () => {
  it('does not end as if it had seen them all', async () => {
    const [first, next] = await Promise.all([startRedis({ source: 'installed' }), startRedis({ source: 'installed' })])
    const all = Array.from({ length: 3_000 }, () => clientOf())
    for (const { url } of [first, next]) {
      const writer = new Redis(url)
      await Promise.all(all.map((one) => new RedisStore(writer).createClient(one)))
      writer.disconnect()
    }
    const redis = new Redis(first.url)
    redis.on('error', () => {})
    const seen = new Set<string>()
    const walk = async () => {
      for await (const { clientId } of new RedisStore(redis).listClients()) {
        seen.add(clientId)
        // As Sentinel does: the same data, and a place in a walk that means another thing.
        if (seen.size === 1_000) {
          redis.options.port = Number(new URL(next.url).port)
          redis.disconnect(true)
        }
      }
      return seen.size
    }
    await expect(walk()).rejects.toMatchObject({ code: 'unavailable', retryable: true })
    // Begun anew, it sees them all.
    seen.clear()
    for await (const { clientId } of new RedisStore(redis).listClients()) seen.add(clientId)
    expect(seen.size).toBe(all.length)
    redis.disconnect()
    await Promise.all([first.stop(), next.stop()])
  })
})

describe('while Redis is away', () => {
  it('calls are refused with an error that says so', async () => {
    const redis = new Redis(1, '127.0.0.1', { maxRetriesPerRequest: 1, retryStrategy: () => 10 })
    redis.on('error', () => {})
    const store = new RedisStore(redis)
    const { clientId } = clientOf()
    for (const call of [
      () => store.deductBalance(clientId, 1),
      () => store.addBalance(clientId, 1, { key: 'k' }),
      () => store.createClient(clientOf()),
      () => store.move(transactionOf(clientId, 'topup', 1)),
      () => store.recordTransaction(transactionOf(clientId, 'topup', 1)),
    ]) {
      await expect(call()).rejects.toMatchObject({ code: 'unavailable', outcome: 'not_executed' })
    }
    for (const read of [() => store.getClient(clientId), () => store.listTransactions(clientId)]) {
      await expect(read()).rejects.toMatchObject({ code: 'unavailable' })
    }
    redis.disconnect()
  })

  it('a server that answers in no time the client allows leaves its outcome unknown, and a key tells later', async () => {
    const topology = await TOPOLOGIES.single()
    const redis = new Redis(topology.target as string, { commandTimeout: 300 })
    redis.on('error', () => {})
    await new Promise((resolve) => redis.once('ready', resolve))
    // One that waits for as long as it takes.
    const store = new RedisStore(topology.owner)
    const { clientId } = clientOf()
    await store.createClient(clientOf({ clientId, balance: 1_000 }))
    for (const proxy of topology.proxies) proxy.hold()
    await expect(new RedisStore(redis).deductBalance(clientId, 100, { key: 'call-1' })).rejects.toMatchObject({
      code: 'unavailable',
      outcome: 'unknown',
    })
    for (const proxy of topology.proxies) proxy.behave()
    expect(await store.deductBalance(clientId, 100, { key: 'call-1' })).toBe(900)
    expect((await store.getClient(clientId))?.balance).toBe(900)
    redis.disconnect()
    await topology.stop()
  })
})
