import assert from 'node:assert/strict'
import type { LedgerStore, TransactionRecord } from '../types.js'
import { testListing } from './listing.js'
import { testPruning } from './pruning.js'
import { testStripe402Store } from './published.js'
import {
  BAD_AMOUNTS,
  balanceOf,
  CLOCKS_APART_MS,
  clientOf,
  clientWith,
  type LedgerSuite,
  MAX,
  newClientId,
  newId,
  rejectsWith,
  type Suite,
  transactionOf,
} from './subject.js'

/** What the stores of Holdfast must do: the published methods and everything beyond them. */
export function testLedgerStore(suite: LedgerSuite<LedgerStore>): void {
  testStripe402Store(suite)
  testKeys(suite)
  testMoves(suite)
  testRecords(suite)
  testListing(suite)
  testPruning(suite)
}

function testKeys({ test, makeStore }: Suite<LedgerStore>): void {
  test('a change with a key is done once and answered with the same balance', async () => {
    const store = await makeStore()
    const { clientId } = await clientWith(store, 1_000)
    assert.equal(await store.deductBalance(clientId, 100, { key: 'call-1' }), 900)
    assert.equal(await store.addBalance(clientId, 500, { key: 'topup-1' }), 1_400)
    const before = await store.getClient(clientId)
    assert.equal(await store.deductBalance(clientId, 100, { key: 'call-1' }), 900)
    assert.equal(await store.addBalance(clientId, 500, { key: 'topup-1' }), 1_400)
    assert.deepEqual(await store.getClient(clientId), before)
    assert.equal(await store.deductBalance(clientId, 100, { key: 'call-2' }), 1_300)
  })

  test('a key with another amount, or for the other method, is a conflict and changes nothing', async () => {
    const store = await makeStore()
    const { clientId } = await clientWith(store, 1_000)
    await store.deductBalance(clientId, 100, { key: 'call-1' })
    const before = await store.getClient(clientId)
    await rejectsWith('idempotency_conflict', () => store.deductBalance(clientId, 101, { key: 'call-1' }))
    await rejectsWith('idempotency_conflict', () => store.addBalance(clientId, 100, { key: 'call-1' }))
    assert.deepEqual(await store.getClient(clientId), before)
  })

  test('a refusal is not remembered: the same key may be tried again', async () => {
    const store = await makeStore()
    const { clientId } = await clientWith(store, 50)
    assert.equal(await store.deductBalance(clientId, 100, { key: 'call-1' }), null)
    await store.addBalance(clientId, 100)
    assert.equal(await store.deductBalance(clientId, 100, { key: 'call-1' }), 50)
    assert.equal(await store.deductBalance(clientId, 100, { key: 'call-1' }), 50)
  })

  test('a key belongs to its client', async () => {
    const store = await makeStore()
    const [one, other] = [await clientWith(store, 1_000), await clientWith(store, 1_000)]
    assert.equal(await store.deductBalance(one.clientId, 100, { key: 'same' }), 900)
    assert.equal(await store.deductBalance(other.clientId, 300, { key: 'same' }), 700)
  })

  test('the same key many times at once is done once', async () => {
    const store = await makeStore()
    const { clientId } = await clientWith(store, 1_000)
    const balances = await Promise.all(
      Array.from({ length: 50 }, () => store.deductBalance(clientId, 100, { key: 'one' })),
    )
    assert.deepEqual(new Set(balances), new Set([900]))
    assert.equal(await balanceOf(store, clientId), 900)
  })

  test('a key that is none is refused', async () => {
    const store = await makeStore()
    const record = await clientWith(store, 1_000)
    for (const key of ['', 7, null, 'a\nb', 'x'.repeat(256), '~own'] as string[]) {
      await rejectsWith('invalid_argument', () => store.deductBalance(record.clientId, 1, { key }), key)
      await rejectsWith('invalid_argument', () => store.addBalance(record.clientId, 1, { key }), key)
    }
    assert.deepEqual(await store.getClient(record.clientId), record)
  })
}

function testMoves({ test, makeStore }: Suite<LedgerStore>): void {
  test('move changes the balance and records the transaction', async () => {
    const store = await makeStore()
    const { clientId } = await clientWith(store, 0)
    const topup = transactionOf(clientId, 'topup', 50_000, { stripePaymentIntentId: 'pi_1' })
    const deduction = transactionOf(clientId, 'deduction', 700, { resource: 'https://api.test/report' })
    assert.equal(await store.move(topup), 50_000)
    assert.equal(await store.move(deduction), 49_300)
    assert.equal(await balanceOf(store, clientId), 49_300)
    assert.deepEqual(await store.getTransaction(clientId, topup.id), topup)
    assert.deepEqual(await store.getTransaction(clientId, deduction.id), deduction)
    const { transactions } = await store.listTransactions(clientId)
    assert.deepEqual(transactions.map(({ id }) => id).sort(), [topup.id, deduction.id].sort())
  })

  test('move without createdAt is dated now, and moves updatedAt', async () => {
    const store = await makeStore()
    const { clientId } = await clientWith(store, 0)
    const startedAtMs = Date.now()
    const id = newId()
    assert.equal(await store.move({ id, clientId, type: 'topup', amount: 1 }), 1)
    const at = (await store.getTransaction(clientId, id))?.createdAt
    assert.ok(Number(at) >= startedAtMs && Number(at) <= Date.now(), `dated ${at?.toISOString()}`)
    assert.ok(Number((await store.getClient(clientId))?.updatedAt) >= startedAtMs - CLOCKS_APART_MS)
  })

  test('move is done once for its id, and answered with the same balance again', async () => {
    const store = await makeStore()
    const { clientId } = await clientWith(store, 1_000)
    const first = transactionOf(clientId, 'deduction', 100)
    assert.equal(await store.move(first), 900)
    await store.addBalance(clientId, 5_000)
    const before = await store.getClient(clientId)
    assert.equal(await store.move(first), 900)
    // A retry is often made anew, with another time and other words about it.
    assert.equal(await store.move({ ...first, createdAt: new Date(), resource: 'https://api.test/again' }), 900)
    assert.deepEqual(await store.getClient(clientId), before)
    assert.deepEqual(await store.getTransaction(clientId, first.id), first)
    assert.equal((await store.listTransactions(clientId)).transactions.length, 1)
  })

  test('the same move many times at once is done once', async () => {
    const store = await makeStore()
    const { clientId } = await clientWith(store, 1_000)
    const once = transactionOf(clientId, 'deduction', 100)
    const balances = await Promise.all(Array.from({ length: 30 }, () => store.move(once)))
    assert.deepEqual(new Set(balances), new Set([900]))
    assert.equal(await balanceOf(store, clientId), 900)
    assert.equal((await store.listTransactions(clientId)).transactions.length, 1)
  })

  test('an id with another type or amount is a conflict and changes nothing', async () => {
    const store = await makeStore()
    const { clientId } = await clientWith(store, 1_000)
    const first = transactionOf(clientId, 'deduction', 100)
    await store.move(first)
    const before = await store.getClient(clientId)
    await rejectsWith('idempotency_conflict', () => store.move({ ...first, amount: 101 }))
    await rejectsWith('idempotency_conflict', () => store.move({ ...first, type: 'topup' }))
    assert.deepEqual(await store.getClient(clientId), before)
    assert.deepEqual(await store.getTransaction(clientId, first.id), first)
  })

  test('a move that is refused leaves nothing behind, and may succeed later', async () => {
    const store = await makeStore()
    const record = await clientWith(store, 50)
    const much = transactionOf(record.clientId, 'deduction', 100)
    assert.equal(await store.move(much), null)
    assert.deepEqual(await store.getClient(record.clientId), record)
    assert.equal(await store.getTransaction(record.clientId, much.id), null)
    assert.deepEqual((await store.listTransactions(record.clientId)).transactions, [])
    await store.addBalance(record.clientId, 100)
    assert.equal(await store.move(much), 50)
  })

  test('move of an unknown client is an error and leaves nothing behind', async () => {
    const store = await makeStore()
    const clientId = newClientId()
    for (const type of ['topup', 'deduction'] as const) {
      const moved = transactionOf(clientId, type, 100)
      await rejectsWith('client_not_found', () => store.move(moved))
      assert.equal(await store.getTransaction(clientId, moved.id), null)
    }
    assert.equal(await store.getClient(clientId), null)
    assert.deepEqual(await store.listTransactions(clientId), { transactions: [], next: null })
  })

  test('a move that is none is refused, and nothing changes', async () => {
    const store = await makeStore()
    const record = await clientWith(store, MAX)
    for (const amount of BAD_AMOUNTS as readonly number[]) {
      await rejectsWith('invalid_amount', () => store.move(transactionOf(record.clientId, 'topup', amount)), amount)
    }
    const over = transactionOf(record.clientId, 'topup', 1)
    await rejectsWith('invalid_amount', () => store.move(over))
    for (const wrong of [{ id: '' }, { type: 'refund' }, { createdAt: new Date(Number.NaN) }, { clientId: 7 }]) {
      await rejectsWith('invalid_argument', () => store.move({ ...over, ...wrong } as never), JSON.stringify(wrong))
    }
    assert.deepEqual(await store.getClient(record.clientId), record)
    assert.equal(await store.getTransaction(record.clientId, over.id), null)
  })

  test('many moves at once: those that were accepted are recorded, and make the balance', async () => {
    const store = await makeStore()
    const { clientId } = await clientWith(store, 2_000)
    const moves = Array.from({ length: 60 }, (_, n) =>
      transactionOf(clientId, n % 3 === 0 ? 'topup' : 'deduction', 100 + n),
    )
    const outcomes = await Promise.all(moves.map((one) => store.move(one)))
    const accepted = moves.filter((_, n) => outcomes[n] !== null)
    const { transactions } = await store.listTransactions(clientId)
    assert.deepEqual(new Set(transactions.map(({ id }) => id)), new Set(accepted.map(({ id }) => id)))
    const sum = accepted.reduce((total, { type, amount }) => total + (type === 'topup' ? amount : -amount), 2_000)
    assert.equal(await balanceOf(store, clientId), sum)
  })
}

function testRecords({ test, makeStore }: Suite<LedgerStore>): void {
  test('a transaction that is recorded is read back field by field', async () => {
    const store = await makeStore()
    const { clientId } = await clientWith(store, 0)
    const least = transactionOf(clientId, 'topup', 0)
    const most = transactionOf(clientId, 'deduction', MAX, {
      stripePaymentIntentId: 'pi_"quoted"',
      resource: 'https://api.test/ü?q=\\n{}',
      createdAt: new Date('1999-12-31T23:59:59.001Z'),
    })
    for (const one of [least, most]) {
      await store.recordTransaction(one)
      assert.deepEqual(await store.getTransaction(clientId, one.id), one)
    }
    assert.equal(await store.getTransaction(clientId, newId()), null)
    assert.equal(await store.getTransaction(newClientId(), least.id), null)
  })

  test('recordTransaction does not ask for a client', async () => {
    const store = await makeStore()
    const one = transactionOf(newClientId(), 'topup', 100)
    await store.recordTransaction(one)
    assert.deepEqual(await store.getTransaction(one.clientId, one.id), one)
    assert.equal(await store.getClient(one.clientId), null)
  })

  test('the first record of an id stays; another type or amount is a conflict', async () => {
    const store = await makeStore()
    const { clientId } = clientOf()
    const first = transactionOf(clientId, 'topup', 100)
    await store.recordTransaction(first)
    await store.recordTransaction({ ...first, createdAt: new Date() })
    await rejectsWith('idempotency_conflict', () => store.recordTransaction({ ...first, amount: 101 }))
    await rejectsWith('idempotency_conflict', () => store.recordTransaction({ ...first, type: 'deduction' }))
    assert.deepEqual(await store.getTransaction(clientId, first.id), first)
    assert.deepEqual((await store.listTransactions(clientId)).transactions, [first])
  })

  test('a move of what is recorded already moves nothing: its balance was changed by other means', async () => {
    const store = await makeStore()
    const { clientId } = await clientWith(store, 1_000)
    const recorded: TransactionRecord = transactionOf(clientId, 'deduction', 100)
    await store.deductBalance(clientId, 100)
    await store.recordTransaction(recorded)
    assert.equal(await store.move(recorded), 900)
    assert.equal(await balanceOf(store, clientId), 900)
    await rejectsWith('idempotency_conflict', () => store.move({ ...recorded, amount: 1 }))
  })

  test('what was moved is recorded: recordTransaction of it changes nothing', async () => {
    const store = await makeStore()
    const { clientId } = await clientWith(store, 1_000)
    const moved = transactionOf(clientId, 'deduction', 100)
    await store.move(moved)
    await store.recordTransaction(moved)
    assert.equal(await balanceOf(store, clientId), 900)
    assert.deepEqual((await store.listTransactions(clientId)).transactions, [moved])
  })
}
