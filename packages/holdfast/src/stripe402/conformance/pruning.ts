import assert from 'node:assert/strict'
import type { LedgerStore } from '../types.js'
import {
  clientOf,
  clientWith,
  type LedgerSuite,
  recordSome,
  rejectsWith,
  type Suite,
  transactionOf,
} from './subject.js'

const LONG_AGO_MS = Date.parse('0999-01-01T00:00:00.000Z')
const DAY_MS = 86_400_000

export function testPruning({ prunes = true, ...suite }: LedgerSuite<LedgerStore>): void {
  const { test, makeStore } = suite
  test('options of pruning that are none are refused', async () => {
    const store = await makeStore()
    for (const given of [undefined, {}, { olderThan: 7 }, { olderThan: new Date(Number.NaN) }]) {
      await rejectsWith('invalid_argument', () => store.pruneTransactions(given as never), given)
    }
  })

  if (prunes) testForgetting(suite)
  else testKeeping(suite)
}

function testForgetting({ test, makeStore }: Suite<LedgerStore>): void {
  test('pruning takes transactions that are older, and nothing else', async () => {
    const store = await makeStore()
    const record = await clientWith(store, 1_000)
    const { clientId } = record
    const all = await recordSome(store, clientId, [0, 1, 2, 2, 3], LONG_AGO_MS)
    const moved = transactionOf(clientId, 'deduction', 100, { createdAt: new Date(LONG_AGO_MS) })
    await store.move(moved)
    const kept = all.slice(2)
    const went = await store.pruneTransactions({ olderThan: new Date(LONG_AGO_MS + 2) })
    assert.ok(went >= 3, `expected at least 3 to go, got ${went}`)
    const { transactions } = await store.listTransactions(clientId, { order: 'oldest' })
    assert.deepEqual(new Set(transactions.map(({ id }) => id)), new Set(kept.map(({ id }) => id)))
    for (const { id } of [...all.slice(0, 2), moved]) assert.equal(await store.getTransaction(clientId, id), null)
    for (const one of kept) assert.deepEqual(await store.getTransaction(clientId, one.id), one)
    assert.equal((await store.getClient(clientId))?.balance, 900)
    await store.pruneTransactions({ olderThan: new Date(LONG_AGO_MS + DAY_MS) })
    assert.deepEqual(await store.listTransactions(clientId), { transactions: [], next: null })
  })

  test('a page can go on behind a transaction that is gone', async () => {
    const store = await makeStore()
    const { clientId } = clientOf()
    const all = await recordSome(store, clientId, [0, 1_000, 2_000, 3_000], LONG_AGO_MS)
    const first = await store.listTransactions(clientId, { order: 'oldest', limit: 2 })
    await store.pruneTransactions({ olderThan: new Date(LONG_AGO_MS + 1_001) })
    const second = await store.listTransactions(clientId, { order: 'oldest', after: first.next as string })
    assert.deepEqual(second, { transactions: all.slice(2), next: null })
  })
}

function testKeeping({ test, makeStore }: Suite<LedgerStore>): void {
  test('pruning takes nothing from a store that keeps everything', async () => {
    const store = await makeStore()
    const { clientId } = await clientWith(store, 1_000)
    const all = await recordSome(store, clientId, [0, 1], LONG_AGO_MS)
    assert.equal(await store.pruneTransactions({ olderThan: new Date(LONG_AGO_MS + DAY_MS) }), 0)
    assert.deepEqual((await store.listTransactions(clientId, { order: 'oldest' })).transactions, all)
  })
}
