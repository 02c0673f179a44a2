import assert from 'node:assert/strict'
import type { ClientRecord, LedgerStore, TransactionRecord } from '../types.js'
import { clientWith, newClientId, recordSome, rejectsWith, type Suite } from './subject.js'

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
