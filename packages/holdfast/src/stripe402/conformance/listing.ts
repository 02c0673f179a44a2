import assert from 'node:assert/strict'
import type { ClientRecord, LedgerStore, TransactionRecord } from '../types.js'
import { clientOf, clientWith, newClientId, newId, rejectsWith, type Suite, transactionOf } from './subject.js'

const LONG_AGO_MS = Date.parse('0999-01-01T00:00:00.000Z')
const DAY_MS = 86_400_000

export function testListing({ test, makeStore }: Suite<LedgerStore>): void {
  test('transactions come newest or oldest first, whatever the order they were recorded in', async () => {
    const store = await makeStore()
    const all = await recordSome(
      store,
      newClientId(),
      [3, 1, 2, 0].map((second) => second * 1_000),
    )
    const byTime = [...all].sort((a, b) => Number(a.createdAt) - Number(b.createdAt))
    const { clientId } = all[0] as TransactionRecord
    assert.deepEqual(await store.listTransactions(clientId, { order: 'oldest' }), { transactions: byTime, next: null })
    assert.deepEqual((await store.listTransactions(clientId)).transactions, byTime.reverse())
  })

  test('pages leave out nothing and repeat nothing, also where many have the same time', async () => {
    const store = await makeStore()
    // 7 before, 20 in the same millisecond, 6 after.
    const offsetsMs = [...Array(7).keys()].map((n) => n - 10).concat(Array(20).fill(0), [1, 2, 3, 4, 5, 6])
    const all = await recordSome(store, newClientId(), offsetsMs)
    const { clientId } = all[0] as TransactionRecord
    const oldest = await readAll(store, clientId, 'oldest', 4)
    assert.deepEqual(new Set(oldest.map(({ id }) => id)), new Set(all.map(({ id }) => id)))
    assert.equal(oldest.length, all.length)
    const times = oldest.map(({ createdAt }) => Number(createdAt))
    assert.deepEqual(
      times,
      [...times].sort((a, b) => a - b),
    )
    assert.deepEqual((await readAll(store, clientId, 'newest', 5)).reverse(), oldest)
    assert.deepEqual(await readAll(store, clientId, 'oldest', 1), oldest)
  })

  test('what is recorded between two pages does not shift them', async () => {
    const store = await makeStore()
    const all = await recordSome(store, newClientId(), [0, 0, 0, 0, 0, 0])
    const { clientId } = all[0] as TransactionRecord
    const first = await store.listTransactions(clientId, { limit: 3 })
    await recordSome(store, clientId, [5_000, 6_000])
    const second = await store.listTransactions(clientId, { limit: 10, after: first.next as string })
    const seen = [...first.transactions, ...second.transactions].map(({ id }) => id)
    for (const { id } of all) assert.equal(seen.filter((one) => one === id).length, 1)
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

  test('options of a page that are none are refused', async () => {
    const store = await makeStore()
    const clientId = newClientId()
    for (const limit of [0, -1, 1.5, 1_001, '10']) {
      await rejectsWith('invalid_argument', () => store.listTransactions(clientId, { limit } as never), limit)
    }
    for (const after of ['', 'garbage', 7, Buffer.from('x:y').toString('base64url')]) {
      await rejectsWith('invalid_argument', () => store.listTransactions(clientId, { after } as never), after)
    }
    await rejectsWith('invalid_argument', () => store.listTransactions(clientId, { order: 'random' } as never))
    await rejectsWith('invalid_argument', () => store.getTransaction(clientId, ''))
  })

  test('every client is listed', async () => {
    const store = await makeStore()
    const made = await Promise.all(Array.from({ length: 25 }, (_, n) => clientWith(store, n)))
    const listed = new Map<string, ClientRecord>()
    // What others have left in the store need not be sound.
    for await (const one of store.listClients({ onDamaged: () => {} })) listed.set(one.clientId, one)
    for (const record of made) assert.deepEqual(listed.get(record.clientId), record)
  })

  test('a walk over the clients can be stopped', async () => {
    const store = await makeStore()
    await Promise.all([clientWith(store, 1), clientWith(store, 2)])
    const stopped = new AbortController()
    stopped.abort()
    const walk = async () => {
      for await (const _ of store.listClients({ signal: stopped.signal })) assert.fail('expected no client')
    }
    await rejectsWith('aborted', walk)
    for await (const _ of store.listClients({ onDamaged: () => {} })) break
  })

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

  test('options of pruning that are none are refused', async () => {
    const store = await makeStore()
    for (const given of [undefined, {}, { olderThan: 7 }, { olderThan: new Date(Number.NaN) }]) {
      await rejectsWith('invalid_argument', () => store.pruneTransactions(given as never), given)
    }
  })
}

async function recordSome(
  store: LedgerStore,
  clientId: string,
  offsetsMs: readonly number[],
  startMs = Date.parse('2024-03-01T00:00:00.000Z'),
): Promise<TransactionRecord[]> {
  const all = offsetsMs.map((offsetMs, n) =>
    transactionOf(clientId, n % 2 === 0 ? 'topup' : 'deduction', n, {
      // Words of different alphabets and cases: an order by language is not the order by bytes.
      id: [newId(), newId().toUpperCase(), `é-${newId()}`, `Z-${newId()}`][n % 4] as string,
      createdAt: new Date(startMs + offsetMs),
    }),
  )
  for (const one of all) await store.recordTransaction(one)
  return all
}

async function readAll(
  store: LedgerStore,
  clientId: string,
  order: 'newest' | 'oldest',
  limit: number,
): Promise<TransactionRecord[]> {
  const all: TransactionRecord[] = []
  for (let after: string | undefined; ; ) {
    const page = await store.listTransactions(clientId, { order, limit, ...(after === undefined ? {} : { after }) })
    all.push(...page.transactions)
    assert.ok(page.transactions.length <= limit, `expected at most ${limit} on a page`)
    if (page.next === null) return all
    after = page.next
  }
}
