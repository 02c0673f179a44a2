/** On a Cluster the store keeps notes of what is to be done with transactions. What if one of them is damaged? */
import { RedisStore } from 'holdfast/stripe402'
import { Cluster } from 'ioredis'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { sharedCluster } from '../../../../test/servers.js'
import { clientOf, newClientId, newId, transactionOf } from '../../src/stripe402/conformance/subject.js'

describe('on a Cluster, a note of what is to be done', () => {
  let redis: Cluster
  let store: RedisStore
  beforeEach(async () => {
    // Under a prefix of its own: pruning is for all clients of a store.
    redis = new Cluster(await sharedCluster(), { keyPrefix: `${newId()}:` })
    store = new RedisStore(redis)
  })
  afterEach(() => redis.disconnect())

  const besideOf = (clientId: string) => `hf:stripe402:{${redis.options.keyPrefix}stripe402:client:${clientId}}`
  const moved = async () => {
    const { clientId } = clientOf()
    await store.createClient(clientOf({ clientId, balance: 1_000 }))
    const one = transactionOf(clientId, 'deduction', 100)
    await store.move(one)
    return one
  }

  it.each(['', 'garbage', '+{}', '12', 'soon-', '12+not json', '12+{}', '12+{"id":"x","clientId":"y"}'])(
    'that is none (%s) is reported, and nothing is filed, removed or forgotten by it',
    async (note) => {
      const one = await moved()
      const { clientId } = one
      const stuck = newId()
      await redis.hset(`${besideOf(clientId)}:pending:v1`, { [one.id]: note, [stuck]: note })
      await expect(store.listTransactions(clientId)).rejects.toMatchObject({ code: 'client_damaged' })
      const reported: Error[] = []
      const { transactions } = await store.listTransactions(clientId, { onDamaged: (error) => reported.push(error) })
      expect([transactions, reported.length]).toEqual([[one], 1])
      expect(await redis.get(`stripe402:txn:${clientId}:${stuck}`)).toBeNull()
      expect(await store.move(one)).toBe(900)
      expect((await store.getClient(clientId))?.balance).toBe(900)
      // Nor does it keep anybody from anything else.
      await store.recordTransaction(transactionOf(clientId, 'topup', 5))
      expect(await store.move(transactionOf(clientId, 'topup', 5))).toBe(905)
      expect((await redis.hkeys(`${besideOf(clientId)}:pending:v1`)).sort()).toEqual([one.id, stuck].sort())
    },
  )

  it('to remove a transaction is followed also where what moves remember is damaged', async () => {
    const createdAt = new Date('2001-01-01T00:00:00.000Z')
    const one = transactionOf(newClientId(), 'topup', 1, { createdAt })
    await store.recordTransaction(one)
    await redis.set(`${besideOf(one.clientId)}:moves:v1`, 'not a hash')
    expect(await store.pruneTransactions({ olderThan: new Date('2002-01-01T00:00:00.000Z') })).toBe(1)
    expect(await store.getTransaction(one.clientId, one.id)).toBeNull()
  })
})
