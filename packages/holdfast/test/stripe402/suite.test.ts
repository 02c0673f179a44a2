/** The suite is held against a store that does what the documentation of stripe402 says: it must find what is known to be wrong with that. */
import type { ClientRecord, Stripe402Store, TransactionRecord } from 'holdfast/stripe402'
import { testStripe402Store } from 'holdfast/stripe402/conformance'
import { Redis } from 'ioredis'
import { expect, it } from 'vitest'
import { freshRedis } from '../../../../test/servers.js'

const DEDUCT = `local balance = tonumber(redis.call('HGET', KEYS[1], 'balance') or '0')
if balance < tonumber(ARGV[1]) then return -1 end
redis.call('HSET', KEYS[1], 'balance', tostring(balance - tonumber(ARGV[1])), 'updatedAt', ARGV[2])
return balance - tonumber(ARGV[1])`

class PublishedStore implements Stripe402Store {
  constructor(readonly redis: Redis) {}

  async getClient(clientId: string): Promise<ClientRecord | null> {
    const held = await this.redis.hgetall(`stripe402:client:${clientId}`)
    if (!held.clientId) return null
    const { stripeCustomerId = '', currency = '', balance = '', createdAt = '', updatedAt = '' } = held
    return {
      clientId: held.clientId,
      stripeCustomerId,
      balance: Number.parseInt(balance, 10),
      currency,
      createdAt: new Date(createdAt),
      updatedAt: new Date(updatedAt),
    }
  }

  async createClient(record: ClientRecord): Promise<void> {
    const dates = { createdAt: record.createdAt.toISOString(), updatedAt: record.updatedAt.toISOString() }
    await this.redis.hset(`stripe402:client:${record.clientId}`, {
      ...record,
      balance: record.balance.toString(),
      ...dates,
    })
  }

  async deductBalance(clientId: string, amount: number): Promise<number | null> {
    const key = `stripe402:client:${clientId}`
    const after = await this.redis.eval(DEDUCT, 1, key, amount.toString(), new Date().toISOString())
    return after === -1 ? null : (after as number)
  }

  async addBalance(clientId: string, amount: number): Promise<number> {
    const key = `stripe402:client:${clientId}`
    const after = await this.redis.hincrby(key, 'balance', amount)
    await this.redis.hset(key, 'updatedAt', new Date().toISOString())
    return after
  }

  async recordTransaction(transaction: TransactionRecord): Promise<void> {
    const { id, clientId, createdAt } = transaction
    await this.redis.set(`stripe402:txn:${clientId}:${id}`, JSON.stringify(transaction))
    await this.redis.zadd(`stripe402:txns:${clientId}`, createdAt.getTime(), id)
  }
}

it('finds in the published way what is known to be wrong with it, and nothing else', async () => {
  const redis = new Redis(await freshRedis())
  const passed: string[] = []
  const failed: string[] = []
  const bodies: [string, () => Promise<void>][] = []
  testStripe402Store({
    test: (name, body) => bodies.push([name, body]),
    makeStore: () => new PublishedStore(redis),
  })
  for (const [name, body] of bodies) {
    await body().then(
      () => passed.push(name),
      () => failed.push(name),
    )
  }
  expect(failed).toEqual([
    'createClient of a client that is there changes nothing and loses nothing',
    'two first top-ups at once are both there',
    'of an unknown client nothing is deducted, not even zero, and no client comes of it',
    'addBalance to an unknown client is an error, and no client comes of it',
    'an amount that is none is refused, and nothing changes',
    'balances are exact up to 2^53 − 1, and what goes beyond is refused',
    'arguments that are none are refused',
    'a transaction that is none is refused',
  ])
  expect(passed).toContain(
    'of 1,000 deductions of 100 at once from 50,000 exactly 500 succeed, each with a balance of its own',
  )
  redis.disconnect()
})
