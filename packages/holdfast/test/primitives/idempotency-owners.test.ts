import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DurableOrders } from './support/durable-orders.js'
import { claimed } from './support/idempotency.js'
import { TOPOLOGIES } from './support/topologies.js'

describe.each(TOPOLOGIES)('owners of a durable key on %s', (_, open) => {
  let shop: DurableOrders
  beforeAll(async () => {
    shop = await DurableOrders.open(open)
  })
  afterAll(() => shop.close())

  it('two owners, the second commits first: the first can not commit', async () => {
    const orders = shop.begin()
    const first = await claimed(orders, 'key')
    await shop.endLeases()
    await shop.forget()
    const second = await claimed(orders, 'key')
    expect(second).toMatchObject({ attempt: 2, tookOver: true })
    await shop.transact(second.token, 'of the second')
    await expect(shop.transact(first.token, 'of the first')).rejects.toMatchObject({ code: 'claim_lost', status: 409 })
    expect(await orders.complete('key', first.token, 'of the first')).toBe('lost')
    expect(await orders.fail('key', first.token)).toBe('lost')
    await shop.forget()
    expect(await orders.tryClaim('key')).toMatchObject({ result: 'completed', response: 'of the second' })
    expect(await shop.effects()).toBe(1)
  })

  it('two owners, the first comes back before the second has committed: it can not commit either', async () => {
    const orders = shop.begin()
    const first = await claimed(orders, 'key')
    await shop.endLeases()
    await shop.forget()
    const second = await claimed(orders, 'key')
    await expect(shop.transact(first.token, 'of the first')).rejects.toMatchObject({ code: 'claim_lost' })
    await shop.transact(second.token, 'of the second')
    expect(await shop.effects()).toBe(1)
  })

  it('two owners, the first is committing when its lease runs out: nobody takes over, and nobody waits for it', async () => {
    const orders = shop.begin()
    const first = await claimed(orders, 'key')
    const client = await shop.beginEffect()
    await shop.endLeases()
    await orders.completeIn(client, 'key', first.token, 'of the first')
    await shop.forget()
    expect(await orders.tryClaim('key')).toEqual({ result: 'processing', leftMs: 100 })
    await client.query('COMMIT')
    client.release()
    await shop.forget()
    expect(await orders.tryClaim('key')).toMatchObject({ result: 'completed', response: 'of the first' })
    expect(await shop.effects()).toBe(1)
  })

  it('two owners, the first rolls back while it was committing: the next takes over', async () => {
    const orders = shop.begin()
    const first = await claimed(orders, 'key')
    await shop.endLeases()
    await shop.transact(first.token, 'of the first', 'ROLLBACK')
    await shop.forget()
    const second = await claimed(orders, 'key')
    expect(second).toMatchObject({ attempt: 2, tookOver: true })
    await shop.transact(second.token, 'of the second')
    expect(await shop.effects()).toBe(1)
  })

  it.each(['REPEATABLE READ', 'SERIALIZABLE'])(
    'two owners, the first in a transaction that is %s: it can not commit',
    async (isolation) => {
      const orders = shop.begin()
      const first = await claimed(orders, 'key')
      // From its first statement on it sees the world as it was then.
      const client = await shop.beginEffect(`ISOLATION LEVEL ${isolation}`)
      await shop.endLeases()
      await shop.forget()
      const second = await claimed(orders, 'key')
      await expect(orders.completeIn(client, 'key', first.token, 'of the first')).rejects.toMatchObject({
        code: 'unavailable',
        outcome: 'retry',
        sqlstate: '40001',
      })
      expect((await client.query('COMMIT')).command).toBe('ROLLBACK')
      client.release()
      await shop.transact(second.token, 'of the second')
      expect(await shop.effects()).toBe(1)
    },
  )

  it('the same owner has the effect once, also when it does not hear of its commit and does it again', async () => {
    const orders = shop.begin()
    const { token } = await claimed(orders, 'key')
    await shop.transact(token, 'one')
    await expect(shop.transact(token, 'one')).rejects.toMatchObject({ code: 'claim_lost' })
    // Said without an effect, it is what it was.
    expect(await orders.complete('key', token, 'two')).toBe('completed')
    expect(await orders.tryClaim('key')).toMatchObject({ result: 'completed', response: 'one' })
    expect(await shop.effects()).toBe(1)
  })

  it('refuses to complete outside of a transaction, and a pool', async () => {
    const orders = shop.begin()
    const { token } = await claimed(orders, 'key')
    const message = 'client: expected one within a transaction'
    await expect(orders.completeIn(shop.pool, 'key', token, 'one')).rejects.toThrow(message)
    const client = await shop.pool.connect()
    await expect(orders.completeIn(client, 'key', token, 'one')).rejects.toThrow(message)
    client.release()
    await expect(orders.completeIn({} as never, 'key', token, 'one')).rejects.toThrow('client: expected a client of pg')
    expect(await orders.peek('key')).toMatchObject({ result: 'processing' })
  })

  it('model: whatever happens in whatever order, there is one effect at most, and its response is the answer', async () => {
    const step = fc.record({
      what: fc.constantFrom(
        'claim',
        'claim',
        'commit',
        'commit',
        'roll back',
        'fail',
        'lease over',
        'forget',
        'forget',
        'renew',
      ),
      who: fc.constantFrom('one', 'two', 'three'),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
        const orders = shop.begin()
        let response: string | null = null
        let owner: string | null = null
        for (const [at, { what, who }] of steps.entries()) {
          if (what === 'forget') await shop.forget()
          else if (what === 'lease over') await shop.endLeases()
          else if (what === 'renew') {
            expect(await orders.renew('key', who)).toBe(owner === who ? 'renewed' : 'lost')
          } else if (what === 'fail') {
            const ended = await orders.fail('key', who)
            // Who has failed and says so again, and nobody else has come since, hears the same.
            if (owner === who) expect(ended).toBe('failed')
            if (response !== null || (owner !== null && owner !== who)) expect(ended).toBe('lost')
            if (owner === who) owner = null
          } else if (what === 'claim') {
            const claim = await orders.tryClaim('key', { token: who })
            // Redis may be a moment behind, never ahead.
            if (response === null) expect(claim.result).not.toBe('completed')
            else expect(claim.result).not.toBe('claimed')
            if (claim.result === 'completed') expect(claim.response).toBe(response)
            if (claim.result === 'claimed') owner = who
          } else {
            const end = what === 'commit' ? 'COMMIT' : 'ROLLBACK'
            const lost = await shop.transact(who, `${who} ${at}`, end).then(
              () => false,
              () => true,
            )
            expect(lost).toBe(owner !== who)
            if (!lost && end === 'COMMIT') {
              response = `${who} ${at}`
              owner = null
            }
          }
          expect(await shop.effects()).toBe(response === null ? 0 : 1)
        }
      }),
      { numRuns: 25 },
    )
  })
})
