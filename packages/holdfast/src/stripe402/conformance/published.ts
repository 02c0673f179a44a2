import assert from 'node:assert/strict'
import type { Stripe402Store } from '../types.js'
import {
  BAD_AMOUNTS,
  balanceOf,
  CLOCKS_APART_MS,
  clientOf,
  clientWith,
  MAX,
  newClientId,
  rejectsWith,
  type Suite,
  transactionOf,
} from './subject.js'

/** What the five published methods must do, on any store. */
export function testStripe402Store({ test, makeStore }: Suite<Stripe402Store>): void {
  test('a client that is created is read back field by field', async () => {
    const store = await makeStore()
    const record = clientOf({ balance: 49_500, updatedAt: new Date('2024-02-29T23:59:59.999Z') })
    await store.createClient(record)
    assert.deepEqual(await store.getClient(record.clientId), record)
  })

  test('a client that is not there is null', async () => {
    const store = await makeStore()
    assert.equal(await store.getClient(newClientId()), null)
  })

  test('createClient of a client that is there changes nothing and loses nothing', async () => {
    const store = await makeStore()
    const record = await clientWith(store, 50_000)
    assert.equal(await store.deductBalance(record.clientId, 100), 49_900)
    const before = await store.getClient(record.clientId)
    await store.createClient(record)
    await store.createClient(clientOf({ clientId: record.clientId, balance: 7, stripeCustomerId: 'cus_other' }))
    assert.deepEqual(await store.getClient(record.clientId), before)
  })

  test('two first top-ups at once are both there', async () => {
    const store = await makeStore()
    const { clientId } = clientOf()
    // Both look before there is a client. The slower one creates it when the other has topped it up.
    assert.deepEqual(await Promise.all([store.getClient(clientId), store.getClient(clientId)]), [null, null])
    for (const amount of [50_000, 70_000]) {
      await store.createClient(clientOf({ clientId }))
      await store.addBalance(clientId, amount)
    }
    assert.equal(await balanceOf(store, clientId), 120_000)
  })

  test('many first top-ups at once are all there', async () => {
    const store = await makeStore()
    const { clientId } = clientOf()
    await Promise.all(
      Array.from({ length: 10 }, async () => {
        await store.createClient(clientOf({ clientId }))
        await store.addBalance(clientId, 50_000)
      }),
    )
    assert.equal(await balanceOf(store, clientId), 500_000)
  })

  test('deductBalance and addBalance return the balance after, and move updatedAt', async () => {
    const store = await makeStore()
    const record = await clientWith(store, 1_000)
    const startedAtMs = Date.now()
    assert.equal(await store.deductBalance(record.clientId, 300), 700)
    const deducted = await store.getClient(record.clientId)
    assert.equal(deducted?.balance, 700)
    assert.ok(Number(deducted?.updatedAt) >= startedAtMs - CLOCKS_APART_MS, 'updatedAt is when the balance changed')
    assert.deepEqual(deducted?.createdAt, record.createdAt)
    assert.equal(await store.addBalance(record.clientId, 50), 750)
    const added = await store.getClient(record.clientId)
    assert.equal(added?.balance, 750)
    assert.ok(Number(added?.updatedAt) >= Number(deducted?.updatedAt), 'updatedAt moves on')
  })

  test('the whole balance can be deducted, and not one more', async () => {
    const store = await makeStore()
    const { clientId } = await clientWith(store, 1_000)
    assert.equal(await store.deductBalance(clientId, 1_001), null)
    assert.equal(await store.deductBalance(clientId, 1_000), 0)
    assert.equal(await store.deductBalance(clientId, 1), null)
  })

  test('a deduction that is refused changes nothing, updatedAt included', async () => {
    const store = await makeStore()
    const record = await clientWith(store, 1_000)
    assert.equal(await store.deductBalance(record.clientId, 1_001), null)
    assert.deepEqual(await store.getClient(record.clientId), record)
  })

  test('of an unknown client nothing is deducted, not even zero, and no client comes of it', async () => {
    const store = await makeStore()
    const clientId = newClientId()
    assert.equal(await store.deductBalance(clientId, 100), null)
    assert.equal(await store.deductBalance(clientId, 0), null)
    assert.equal(await store.getClient(clientId), null)
  })

  test('addBalance to an unknown client is an error, and no client comes of it', async () => {
    const store = await makeStore()
    const clientId = newClientId()
    await rejectsWith('client_not_found', () => store.addBalance(clientId, 100))
    await rejectsWith('client_not_found', () => store.addBalance(clientId, 0))
    assert.equal(await store.getClient(clientId), null)
    assert.equal(await store.deductBalance(clientId, 100), null)
  })

  test('zero of a known client returns the balance', async () => {
    const store = await makeStore()
    const { clientId } = await clientWith(store, 1_000)
    assert.equal(await store.deductBalance(clientId, 0), 1_000)
    assert.equal(await store.addBalance(clientId, 0), 1_000)
    assert.equal(await store.deductBalance(clientId, -0), 1_000)
    assert.ok(Object.is(await store.deductBalance(clientId, 1_000), 0), 'zero, and not minus zero')
  })

  test('an amount that is none is refused, and nothing changes', async () => {
    const store = await makeStore()
    const record = await clientWith(store, 1_000)
    for (const amount of BAD_AMOUNTS as readonly number[]) {
      await rejectsWith('invalid_amount', () => store.deductBalance(record.clientId, amount), amount)
      await rejectsWith('invalid_amount', () => store.addBalance(record.clientId, amount), amount)
      const { clientId } = clientOf()
      await rejectsWith('invalid_amount', () => store.createClient(clientOf({ clientId, balance: amount })), amount)
      assert.equal(await store.getClient(clientId), null)
    }
    assert.deepEqual(await store.getClient(record.clientId), record)
  })

  test('balances are exact up to 2^53 − 1, and what goes beyond is refused', async () => {
    const store = await makeStore()
    const record = await clientWith(store, MAX)
    await rejectsWith('invalid_amount', () => store.addBalance(record.clientId, 1))
    await rejectsWith('invalid_amount', () => store.addBalance(record.clientId, MAX))
    assert.deepEqual(await store.getClient(record.clientId), record)
    assert.equal(await store.deductBalance(record.clientId, 1), MAX - 1)
    assert.equal(await store.addBalance(record.clientId, 1), MAX)
    assert.equal(await store.deductBalance(record.clientId, MAX - 2), 2)
    assert.equal(await store.addBalance(record.clientId, MAX - 2), MAX)
    assert.equal(await store.deductBalance(record.clientId, MAX), 0)
    // From 10^15 on some formats round or go over to exponents.
    assert.equal(await store.addBalance(record.clientId, 1_234_567_890_123_457), 1_234_567_890_123_457)
    assert.equal(await store.deductBalance(record.clientId, 234_567_890_123_456), 1_000_000_000_000_001)
    assert.equal(await balanceOf(store, record.clientId), 1_000_000_000_000_001)
  })

  test('arguments that are none are refused', async () => {
    const store = await makeStore()
    const bad = [undefined, null, 7, '', 'a\u0000b', 'x'.repeat(256)] as unknown as string[]
    for (const clientId of bad) {
      await rejectsWith('invalid_argument', () => store.getClient(clientId), clientId)
      await rejectsWith('invalid_argument', () => store.deductBalance(clientId, 1), clientId)
      await rejectsWith('invalid_argument', () => store.addBalance(clientId, 1), clientId)
      await rejectsWith('invalid_argument', () => store.createClient(clientOf({ clientId })), clientId)
    }
    const dates = [undefined, new Date(Number.NaN), '2024-01-15T10:30:00.000Z', Date.now()] as unknown as Date[]
    for (const createdAt of dates) {
      const record = clientOf({ createdAt })
      await rejectsWith('invalid_argument', () => store.createClient(record), createdAt)
      assert.equal(await store.getClient(record.clientId), null)
    }
    await rejectsWith('invalid_argument', () => store.createClient(undefined as never))
  })

  test('a transaction is recorded, also twice, and leaves the balance alone', async () => {
    const store = await makeStore()
    const record = await clientWith(store, 1_000)
    const transaction = transactionOf(record.clientId, 'deduction', 100, { resource: 'https://api.test/a?b=ü' })
    await store.recordTransaction(transaction)
    await store.recordTransaction(transaction)
    assert.deepEqual(await store.getClient(record.clientId), record)
  })

  test('a transaction that is none is refused', async () => {
    const store = await makeStore()
    const { clientId } = await clientWith(store, 1_000)
    for (const amount of BAD_AMOUNTS as readonly number[]) {
      const transaction = transactionOf(clientId, 'topup', amount)
      await rejectsWith('invalid_amount', () => store.recordTransaction(transaction), amount)
    }
    const good = transactionOf(clientId, 'topup', 1)
    for (const wrong of [{ id: '' }, { type: 'refund' }, { createdAt: 'now' }, { resource: 7 }, { clientId: null }]) {
      const transaction = { ...good, ...wrong } as never
      await rejectsWith('invalid_argument', () => store.recordTransaction(transaction), JSON.stringify(wrong))
    }
  })

  test('of 1,000 deductions of 100 at once from 50,000 exactly 500 succeed, each with a balance of its own', async () => {
    const store = await makeStore()
    const { clientId } = await clientWith(store, 50_000)
    const balances = await Promise.all(Array.from({ length: 1_000 }, () => store.deductBalance(clientId, 100)))
    const accepted = balances.filter((balance) => balance !== null)
    assert.deepEqual(
      accepted.sort((a, b) => a - b),
      Array.from({ length: 500 }, (_, n) => n * 100),
    )
    assert.equal(await balanceOf(store, clientId), 0)
  })

  test('deductions and additions at once keep every unit', async () => {
    const store = await makeStore()
    const { clientId } = await clientWith(store, 10_000)
    const outcomes = await Promise.all(
      Array.from({ length: 200 }, (_, n) =>
        n % 2 === 0 ? store.addBalance(clientId, 3 + n) : store.deductBalance(clientId, 7 + n),
      ),
    )
    const moved = outcomes.reduce<number>((sum, balance, n) => {
      if (n % 2 === 0) return sum + 3 + n
      return balance === null ? sum : sum - 7 - n
    }, 0)
    assert.equal(await balanceOf(store, clientId), 10_000 + moved)
  })
}
