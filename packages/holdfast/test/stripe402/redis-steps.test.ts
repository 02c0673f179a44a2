/** What if a process dies between any two steps, and what if each step runs twice? */
import { RedisStore } from 'holdfast/stripe402'
import { testLedgerStore } from 'holdfast/stripe402/conformance'
import { Cluster, Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import { freshRedis, sharedCluster } from '../../../../test/servers.js'
import { stripe402Change, stripe402Note, stripe402Prune } from '../../src/redis/scripts.generated.js'
import { clientOf, newId, transactionOf } from '../../src/stripe402/conformance/subject.js'
import { dyingAfter, heldUpBefore, stuttering } from './support/clients.js'

/** Under a prefix of its own: pruning is for all clients of a store, and others have theirs on this Cluster too. */
const ownCluster = async () => new Cluster(await sharedCluster(), { keyPrefix: `${newId()}:` })

const KINDS: Record<string, () => Promise<Redis | Cluster>> = {
  'a single server': async () => new Redis(await freshRedis()),
  'a Cluster': () => ownCluster(),
}
/** More than any of them needs. */
const STEPS_MAX = 12

describe.each(Object.entries(KINDS))('on %s', (_, connect) => {
  let redis: Redis | Cluster
  let store: RedisStore
  beforeAll(async () => {
    redis = await connect()
    store = new RedisStore(redis)
    // So that no first call of a script takes two commands, on whichever node it is.
    for (let n = 0; n < 40; n += 1) {
      const { clientId } = clientOf()
      await store.createClient(clientOf({ clientId, balance: 9 }))
      await store.move(transactionOf(clientId, 'deduction', 1))
      await store.recordTransaction(transactionOf(clientId, 'deduction', 1))
    }
  })
  afterAll(() => redis.disconnect())

  const pendingOf = (clientId: string) =>
    redis.hlen(`hf:stripe402:{${redis.options.keyPrefix ?? ''}stripe402:client:${clientId}}:pending:v1`)
  const indexed = (clientId: string) => redis.zrange(`stripe402:txns:${clientId}`, '0', '-1')

  /** Does it with a process that dies after so many steps, and after one more, until one lives long enough. */
  async function dieAtEachStep(
    act: (dying: RedisStore, clientId: string, id: string) => Promise<unknown>,
    judge: (clientId: string, id: string) => Promise<void>,
  ): Promise<number> {
    for (let steps = 0; steps <= STEPS_MAX; steps += 1) {
      const client = dyingAfter(redis, steps)
      const { clientId } = clientOf()
      const id = newId()
      await store.createClient(clientOf({ clientId, balance: 1_000 }))
      const done = act(new RedisStore(client), clientId, id).then(() => true)
      // All that it has sent is answered when what is sent after it is.
      const died = until(async () => client.sent() === steps && (await settled())).then(() => false)
      const isDone = await Promise.race([done, died])
      await judge(clientId, id)
      if (isDone) return steps
    }
    throw new Error(`expected it to be done within ${STEPS_MAX} steps`)
  }

  const settled = async () => {
    for (let n = 0; n < 3; n += 1) {
      if (redis instanceof Cluster) await Promise.all(redis.nodes('master').map((node) => node.ping()))
      else await redis.ping()
    }
    return true
  }

  it('a move: the balance and the transaction, or neither, whoever looks', async () => {
    const outcomes = new Set<number>()
    const steps = await dieAtEachStep(
      (dying, clientId, id) => dying.move(transactionOf(clientId, 'deduction', 100, { id })),
      async (clientId, id) => {
        const moved = await store.getTransaction(clientId, id)
        const balance = (await store.getClient(clientId))?.balance as number
        outcomes.add(balance)
        expect(balance).toBe(moved === null ? 1_000 : 900)
        const { transactions } = await store.listTransactions(clientId)
        expect(transactions).toEqual(moved === null ? [] : [moved])
        // Who comes by has filed it: plain commands see it too.
        expect(await pendingOf(clientId)).toBe(0)
        expect(await indexed(clientId)).toEqual(moved === null ? [] : [id])
        // And the caller who never heard of it asks again.
        expect(await store.move(transactionOf(clientId, 'deduction', 100, { id }))).toBe(900)
        expect((await store.getClient(clientId))?.balance).toBe(900)
        expect(await indexed(clientId)).toEqual([id])
      },
    )
    expect(outcomes).toEqual(new Set([1_000, 900]))
    expect(steps).toBe(redis.isCluster ? 5 : 1)
  })

  it('a move that was left half-way is finished by the same move', async () => {
    await dieAtEachStep(
      (dying, clientId, id) => dying.move(transactionOf(clientId, 'deduction', 100, { id })),
      async (clientId, id) => {
        expect(await store.move(transactionOf(clientId, 'deduction', 100, { id }))).toBe(900)
        expect(await pendingOf(clientId)).toBe(0)
        expect(await indexed(clientId)).toEqual([id])
      },
    )
  })

  it('a record: itself and its place in the index, or neither', async () => {
    await dieAtEachStep(
      (dying, clientId, id) => dying.recordTransaction(transactionOf(clientId, 'topup', 5, { id })),
      async (clientId, id) => {
        const recorded = await store.getTransaction(clientId, id)
        expect((await store.listTransactions(clientId)).transactions).toEqual(recorded === null ? [] : [recorded])
        expect(await pendingOf(clientId)).toBe(0)
        await store.recordTransaction(transactionOf(clientId, 'topup', 5, { id }))
        expect(await indexed(clientId)).toEqual([id])
      },
    )
  })

  it('many moves at once by a process that dies: every one both or neither', async () => {
    for (const steps of [1, 7, 13, 29, 44, 58, 71]) {
      const client = dyingAfter(redis, steps)
      const { clientId } = clientOf()
      await store.createClient(clientOf({ clientId, balance: 100_000 }))
      const moves = Array.from({ length: 20 }, (_unused, n) => transactionOf(clientId, 'deduction', 1 + n))
      const dying = new RedisStore(client)
      const done = Promise.all(moves.map((one) => dying.move(one)))
      await Promise.race([done, until(async () => client.sent() === steps && (await settled()))])
      const { transactions } = await store.listTransactions(clientId)
      const sum = transactions.reduce((total, { amount }) => total + amount, 0)
      expect((await store.getClient(clientId))?.balance).toBe(100_000 - sum)
      expect(await pendingOf(clientId)).toBe(0)
    }
  })

  describe('when every call runs twice, and the second is answered', () => {
    // A change without a key is the one that is never sent again; how many went is only known to who saw them go.
    const spared = [stripe402Change.sha1, stripe402Change.source, stripe402Prune.sha1, stripe402Prune.source]
    testLedgerStore({ test, makeStore: () => new RedisStore(stuttering(redis, spared)) })
  })
})

describe('on a Cluster, what a process has left behind', () => {
  let redis: Cluster
  let store: RedisStore
  beforeAll(async () => {
    redis = await ownCluster()
    store = new RedisStore(redis)
  })
  afterAll(() => redis.disconnect())

  it('a walk can be the first thing that a client of ioredis is used for', async () => {
    const fresh = redis.duplicate()
    const pruning = new RedisStore(fresh).pruneTransactions({ olderThan: new Date(0) })
    expect(await pruning).toBe(0)
    fresh.disconnect()
  })

  it('is filed by who prunes, also of a client that nobody asks for', async () => {
    const { clientId } = clientOf()
    await store.createClient(clientOf({ clientId, balance: 1_000 }))
    const moved = transactionOf(clientId, 'deduction', 100)
    await leaveHalfway(redis, moved)
    expect(await redis.zrange(`stripe402:txns:${clientId}`, '0', '-1')).toEqual([])
    await store.pruneTransactions({ olderThan: new Date(0) })
    expect(await redis.zrange(`stripe402:txns:${clientId}`, '0', '-1')).toEqual([moved.id])
  })

  it('is filed by who only moves, once it is old', async () => {
    const { clientId } = clientOf()
    await store.createClient(clientOf({ clientId, balance: 1_000 }))
    const moved = transactionOf(clientId, 'deduction', 100)
    await leaveHalfway(redis, moved)
    const pending = `hf:stripe402:{${redis.options.keyPrefix}stripe402:client:${clientId}}:pending:v1`
    const note = (await redis.hget(pending, moved.id)) as string
    await redis.hset(pending, moved.id, `${Date.now() - 60_000}${note.slice(note.indexOf('+'))}`)
    await store.move(transactionOf(clientId, 'deduction', 1))
    expect(await redis.zrange(`stripe402:txns:${clientId}`, '0', '-1')).toContain(moved.id)
    expect(await redis.hlen(pending)).toBe(0)
  })

  it('of a record is filed before the same id is moved, and then the move moves nothing', async () => {
    const { clientId } = clientOf()
    await store.createClient(clientOf({ clientId, balance: 1_000 }))
    const recorded = transactionOf(clientId, 'deduction', 100)
    const client = dyingAfter(redis, 2)
    void new RedisStore(client).recordTransaction(recorded)
    const pending = `hf:stripe402:{${redis.options.keyPrefix}stripe402:client:${clientId}}:pending:v1`
    await until(async () => (await redis.hlen(pending)) === 1)
    await expect(store.move({ ...recorded, amount: 7 })).rejects.toMatchObject({ code: 'idempotency_conflict' })
    expect(await store.move(recorded)).toBe(1_000)
    expect(await redis.zrange(`stripe402:txns:${clientId}`, '0', '-1')).toEqual([recorded.id])
    expect(await redis.hlen(pending)).toBe(0)
  })

  it('is told to who recorded another of this id at the same moment', async () => {
    const { clientId } = clientOf()
    await store.createClient(clientOf({ clientId, balance: 1_000 }))
    const moved = transactionOf(clientId, 'deduction', 100)
    const late = new RedisStore(heldUpBefore(redis, stripe402Note, () => store.move(moved)))
    await expect(late.recordTransaction({ ...moved, amount: 7 })).rejects.toMatchObject({
      code: 'idempotency_conflict',
    })
    expect(await store.getTransaction(clientId, moved.id)).toEqual(moved)
    expect((await store.listTransactions(clientId)).transactions).toEqual([moved])
  })

  it('of pruning is removed by the next who prunes', async () => {
    const olderThan = new Date('2002-01-01T00:00:00.000Z')
    for (let steps = 0; steps < 40; steps += 1) {
      const { clientId } = clientOf()
      await store.createClient(clientOf({ clientId, balance: 1_000 }))
      const old = transactionOf(clientId, 'deduction', 5, { createdAt: new Date('2001-01-01T00:00:00.000Z') })
      await store.move(old)
      const client = { ...dyingAfter(redis, steps), nodes: () => redis.nodes('master') }
      const done = new RedisStore(client).pruneTransactions({ olderThan }).then(() => true)
      const isDone = await Promise.race([done, until(async () => client.sent() === steps).then(() => false)])
      await store.pruneTransactions({ olderThan })
      const nodes = await Promise.all(redis.nodes('master').map((node) => node.keys(`*${clientId}*`)))
      expect(nodes.flat()).toEqual([`${redis.options.keyPrefix}stripe402:client:${clientId}`])
      if (isDone) return
    }
    throw new Error('expected pruning to be done within 40 steps')
  })
})

/** A move whose process died right after the balance was changed. */
async function leaveHalfway(redis: Cluster, moved: ReturnType<typeof transactionOf>): Promise<void> {
  const client = dyingAfter(redis, 2)
  void new RedisStore(client).move(moved)
  await until(async () => (await new RedisStore(redis).getClient(moved.clientId))?.balance === 900)
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 1))
}
