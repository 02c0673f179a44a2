import { randomBytes } from 'node:crypto'
import { Holdfast } from 'holdfast'
import { type ClientRecord, HoldfastStore } from 'holdfast/stripe402'
import { testLedgerStore } from 'holdfast/stripe402/conformance'
import { describe, expect, it, test } from 'vitest'
import { onBothPaths, type Path } from '../api/support/paths.js'
import { allOf, codeOf } from './support/published.js'

const createdAt = new Date('2024-01-15T10:30:00.123Z')
const newClientId = () => randomBytes(32).toString('hex')

const recordOf = (given: Partial<ClientRecord> = {}): ClientRecord => ({
  clientId: newClientId(),
  stripeCustomerId: 'cus_1',
  balance: 1_000,
  currency: 'usd',
  createdAt,
  updatedAt: createdAt,
  ...given,
})

const walletOf = (path: Path, { clientId }: ClientRecord) => path.hf.wallet(`stripe402:${clientId}`)

async function made(store: HoldfastStore, given: Partial<ClientRecord> = {}): Promise<ClientRecord> {
  const record = recordOf(given)
  await store.createClient(record)
  return record
}

onBothPaths((path) => {
  describe('HoldfastStore', () => {
    testLedgerStore({ test, makeStore: () => new HoldfastStore(path.hf), prunes: false })
  })

  describe('a client', () => {
    it('is a wallet, and its journal tells each movement once', async () => {
      const store = new HoldfastStore(path.hf)
      const record = await made(store)
      const { clientId } = record
      await store.move({ id: 't1', clientId, type: 'topup', amount: 50, stripePaymentIntentId: 'pi_1', createdAt })
      await store.move({ id: 't2', clientId, type: 'deduction', amount: 30, resource: 'GET /a', createdAt })
      await store.deductBalance(clientId, 20, { key: 'call' })
      await store.recordTransaction({ id: 't3', clientId, type: 'deduction', amount: 20, createdAt })
      const entries = await walletOf(path, record).entries()
      expect(entries.map(({ kind, key, amount, metadata }) => [kind, key, amount, metadata])).toEqual([
        ['credit', 'opening', 1_000, undefined],
        ['credit', 'txn:t1', 50, { createdAt: createdAt.toISOString(), stripePaymentIntentId: 'pi_1' }],
        ['debit', 'txn:t2', 30, { createdAt: createdAt.toISOString(), resource: 'GET /a' }],
        ['debit', 'key:call', 20, undefined],
      ])
      const { transactions } = await store.listTransactions(clientId, { order: 'oldest' })
      expect(transactions.map(({ id }) => id)).toEqual(['t1', 't2', 't3'])
      expect(await walletOf(path, record).get()).toMatchObject({ available: 1_000, currency: 'usd', creditLimit: 0 })
    })

    it('has holds, and what is held can not be deducted', async () => {
      const store = new HoldfastStore(path.hf)
      const record = await made(store)
      const hold = await walletOf(path, record).hold(900, { key: 'h', ttl: 60_000 })
      expect(await store.deductBalance(record.clientId, 101)).toBeNull()
      expect((await store.getClient(record.clientId))?.balance).toBe(100)
      await hold.settle(400, { key: 's' })
      expect(await store.deductBalance(record.clientId, 101)).toBe(499)
    })

    it('that is frozen or closed says so', async () => {
      const store = new HoldfastStore(path.hf)
      const record = await made(store)
      const wallet = walletOf(path, record)
      await wallet.freeze({ key: 'f' })
      expect(await codeOf(store.deductBalance(record.clientId, 1))).toBe('wallet_frozen')
      await wallet.unfreeze({ key: 'u' })
      await store.deductBalance(record.clientId, 1_000)
      await wallet.close({ key: 'c' })
      expect(await codeOf(store.addBalance(record.clientId, 1))).toBe('wallet_closed')
      expect((await store.getClient(record.clientId))?.balance).toBe(0)
    })

    it('is found under the prefix of its store alone', async () => {
      const [one, other] = [new HoldfastStore(path.hf, { prefix: 'one:' }), new HoldfastStore(path.hf, { prefix: 'o' })]
      const record = await made(one)
      expect(await other.getClient(record.clientId)).toBeNull()
      expect(await one.getClient(record.clientId)).toEqual(record)
      expect(await path.hf.wallet(`one:${record.clientId}`).get()).toMatchObject({ available: 1_000 })
      for (const prefix of ['', 'records:', 'x'.repeat(65), 7, 'a\nb'] as string[]) {
        expect(() => new HoldfastStore(path.hf, { prefix })).toThrow('prefix: expected')
      }
    })

    it('whose currency is another one is left as it is', async () => {
      const store = new HoldfastStore(path.hf)
      const record = await made(store)
      await store.createClient({ ...record, currency: 'eur', balance: 7 })
      expect(await store.getClient(record.clientId)).toEqual(record)
    })
  })

  describe('a process that dies between opening the wallet and filling it', () => {
    /** What createClient does first, and then nothing more. */
    const half = async (record: ClientRecord) => {
      const { stripeCustomerId, balance, currency } = record
      const dates = { createdAt: record.createdAt.toISOString(), updatedAt: record.updatedAt.toISOString() }
      const metadata = { stripeCustomerId, ...dates, opening: balance, entries: 1 }
      await walletOf(path, record).open({ currency, metadata })
    }

    it.each<[string, (store: HoldfastStore, clientId: string) => Promise<unknown>, number]>([
      ['reads it', (store, clientId) => store.getClient(clientId), 1_000],
      ['deducts', (store, clientId) => store.deductBalance(clientId, 100), 900],
      ['adds', (store, clientId) => store.addBalance(clientId, 100), 1_100],
      ['moves', (store, id) => store.move({ id: 't', clientId: id, type: 'deduction', amount: 1 }), 999],
      ['creates it again', (store, clientId) => store.createClient(recordOf({ clientId })), 1_000],
      ['creates another', (store, clientId) => store.createClient(recordOf({ clientId, balance: 7 })), 1_000],
      ['walks by', async (store) => allOf(store.listClients({ onDamaged: () => {} })), 1_000],
    ])('leaves nothing undone for who %s', async (_, call, balance) => {
      const store = new HoldfastStore(path.hf)
      const record = recordOf()
      await half(record)
      await call(store, record.clientId)
      expect((await store.getClient(record.clientId))?.balance).toBe(balance)
      await store.createClient(record)
      expect((await store.getClient(record.clientId))?.balance).toBe(balance)
    })

    it('leaves a change that was done as it was answered, also where what was missing no longer fits', async () => {
      const store = new HoldfastStore(path.hf)
      const record = recordOf({ balance: Number.MAX_SAFE_INTEGER })
      await half(record)
      expect(await store.addBalance(record.clientId, 100, { key: 'topup' })).toBe(100)
      expect(await store.addBalance(record.clientId, 100, { key: 'topup' })).toBe(100)
      expect((await walletOf(path, record).get())?.available).toBe(100)
      expect(await codeOf(store.getClient(record.clientId))).toBe('client_damaged')
    })

    it('leaves a wallet that was closed since as it is', async () => {
      const store = new HoldfastStore(path.hf)
      const record = recordOf()
      await half(record)
      await walletOf(path, record).close({ key: 'c' })
      expect((await store.getClient(record.clientId))?.balance).toBe(0)
      await store.createClient(record)
      expect((await store.getClient(record.clientId))?.balance).toBe(0)
    })

    it('and the next one dies after the first change: who reads makes up for it', async () => {
      const store = new HoldfastStore(path.hf)
      const [one, other] = [recordOf(), recordOf()]
      for (const record of [one, other]) {
        await half(record)
        await walletOf(path, record).credit(1_000, { key: 'key:topup' })
      }
      expect((await store.getClient(one.clientId))?.balance).toBe(2_000)
      const listed = await allOf(store.listClients({ onDamaged: () => {} }))
      expect(listed.find(({ clientId }) => clientId === other.clientId)?.balance).toBe(2_000)
      expect((await store.getClient(one.clientId))?.balance).toBe(2_000)
    })
  })

  describe('at the limits', () => {
    it('ids and keys of any length are kept', async () => {
      const store = new HoldfastStore(path.hf)
      const { clientId } = await made(store)
      const long = 'x'.repeat(255)
      const transaction = { id: long, clientId, type: 'deduction' as const, amount: 1, createdAt }
      expect(await store.move(transaction)).toBe(999)
      expect(await store.move(transaction)).toBe(999)
      await store.recordTransaction({ ...transaction, id: `${long.slice(1)}y` })
      expect(await store.getTransaction(clientId, long)).toEqual(transaction)
      const { transactions } = await store.listTransactions(clientId)
      expect(transactions.map(({ id }) => id)).toEqual([`${long.slice(1)}y`, long])
      expect(await store.deductBalance(clientId, 9, { key: long })).toBe(990)
      expect(await store.deductBalance(clientId, 9, { key: long })).toBe(990)
    })

    it('a client id may be as long as a wallet takes it', async () => {
      const store = new HoldfastStore(path.hf)
      const record = await made(store, { clientId: 'c'.repeat(237) })
      await store.recordTransaction({ id: 't', clientId: record.clientId, type: 'topup', amount: 1, createdAt })
      expect(await store.getClient(record.clientId)).toEqual(record)
      expect(await codeOf(store.createClient(recordOf({ clientId: 'c'.repeat(238) })))).toBe('invalid_argument')
    })

    it('what is moved and comes to nothing is recorded, and conflicts like any other', async () => {
      const store = new HoldfastStore(path.hf)
      const { clientId } = await made(store)
      const nothing = { id: 'zero', clientId, type: 'topup' as const, amount: 0, createdAt }
      expect(await store.move(nothing)).toBe(1_000)
      expect(await store.move(nothing)).toBe(1_000)
      expect(await store.getTransaction(clientId, 'zero')).toEqual(nothing)
      expect(await codeOf(store.move({ ...nothing, type: 'deduction' }))).toBe('idempotency_conflict')
      expect(await codeOf(store.move({ ...nothing, amount: 1 }))).toBe('idempotency_conflict')
      expect(await store.deductBalance(clientId, 0, { key: 'k' })).toBe(1_000)
      expect(await codeOf(store.addBalance(clientId, 0, { key: 'k' }))).toBe('idempotency_conflict')
    })

    it('more text than an entry can keep is refused', async () => {
      const store = new HoldfastStore(path.hf)
      const { clientId } = await made(store)
      const move = { id: 't', clientId, type: 'deduction' as const, amount: 1, resource: 'x'.repeat(5_000) }
      expect(await codeOf(store.move(move))).toBe('too_large')
      expect((await store.getClient(clientId))?.balance).toBe(1_000)
    })

    it('lists what takes more than one read of the journal', async () => {
      const store = new HoldfastStore(path.hf)
      const { clientId } = await made(store, { balance: 10_000 })
      const ids = Array.from({ length: 1_100 }, (_, n) => `t${String(n).padStart(4, '0')}`)
      await Promise.all(ids.map((id) => store.move({ id, clientId, type: 'deduction', amount: 1, createdAt })))
      const seen: string[] = []
      for (let after: string | undefined; ; ) {
        const page = await store.listTransactions(clientId, { order: 'oldest', limit: 400, ...(after && { after }) })
        seen.push(...page.transactions.map(({ id }) => id))
        if (page.next === null) break
        after = page.next
      }
      expect(seen).toEqual(ids)
    })
  })

  describe('a wallet that is no client', () => {
    it('is reported, and left alone', async () => {
      const store = new HoldfastStore(path.hf, { prefix: 'odd:' })
      const sound = await made(store)
      await path.hf.wallet('odd:by hand').open({ currency: 'usd', metadata: { stripeCustomerId: 'cus' } })
      expect(await codeOf(store.getClient('by hand'))).toBe('client_damaged')
      expect(await codeOf(store.createClient(recordOf({ clientId: 'by hand' })))).toBe('client_damaged')
      const damaged: Error[] = []
      const found = await allOf(store.listClients({ onDamaged: (error) => damaged.push(error) }))
      expect([found, damaged.length]).toEqual([[sound], 1])
      expect(await codeOf(allOf(store.listClients()))).toBe('client_damaged')
      expect((await path.hf.wallet('odd:by hand').get())?.seq).toBe(0)
    })

    it('an entry that says it is a transaction and is none is reported', async () => {
      const store = new HoldfastStore(path.hf)
      const record = await made(store)
      await walletOf(path, record).debit(1, { key: 'txn:by hand' })
      expect(await codeOf(store.listTransactions(record.clientId))).toBe('client_damaged')
      expect(await codeOf(store.getTransaction(record.clientId, 'by hand'))).toBe('client_damaged')
      const damaged: Error[] = []
      await store.listTransactions(record.clientId, { onDamaged: (error) => damaged.push(error) })
      expect(damaged).toHaveLength(1)
    })

    it.each<[string, unknown]>([
      ['another type', { type: 'gift', amount: 1 }],
      ['an amount that is none', { type: 'topup', amount: '5' }],
      ['a fraction', { type: 'topup', amount: 0.5 }],
      ['a resource that is no text', { type: 'topup', amount: 5, resource: { url: 'x' } }],
      ['an id that is no text', { type: 'topup', amount: 5, id: 7 }],
      ['a time that is none', { type: 'topup', amount: 5, createdAt: 'soon' }],
      ['no metadata that could be read', 'text'],
    ])('a note with %s is no transaction, and reported', async (_, facts) => {
      const store = new HoldfastStore(path.hf)
      const record = await made(store)
      const at = createdAt.toISOString()
      const metadata = typeof facts === 'object' ? { createdAt: at, ...facts } : facts
      await walletOf(path, record).note({ key: 'txn:by hand', metadata })
      expect(await codeOf(store.getTransaction(record.clientId, 'by hand'))).toBe('client_damaged')
      expect(await codeOf(store.listTransactions(record.clientId))).toBe('client_damaged')
    })
  })
})

onBothPaths(
  (path) => {
    it('what the store answers is committed, though its Holdfast acknowledges from memory', async () => {
      const store = new HoldfastStore(path.hf)
      const { clientId } = await made(store)
      const other = await Holdfast.connect({ redis: path.redisUrl, postgres: path.databaseUrl })
      for (let balance = 999; balance > 990; balance -= 1) {
        expect(await store.deductBalance(clientId, 1)).toBe(balance)
        expect((await new HoldfastStore(other).getClient(clientId))?.balance).toBe(balance)
      }
      await other.close()
    })
  },
  { durability: 'memory' },
)
