import { randomUUID } from 'node:crypto'
import { Holdfast } from 'holdfast'
import {
  type ClientRecord,
  HoldfastStore,
  type ImportReport,
  importStore,
  type LedgerStore,
  type ListClientsOptions,
  PostgresStore,
  RedisStore,
  type TransactionRecord,
  verifyStore,
} from 'holdfast/stripe402'
import { Redis } from 'ioredis'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { emptyDatabase, freshDatabase, freshRedis } from '../../../../test/servers.js'
import { startProxy } from '../redis/support/proxy.js'
import { allOf, codeOf } from './support/published.js'

const START_MS = Date.parse('2024-01-15T10:30:00.123Z')

interface Source {
  readonly store: LedgerStore
  /** As other software would write it. */
  setBalance(clientId: string, balance: string): Promise<unknown>
  empty(): Promise<unknown>
  close(): Promise<unknown>
}

const SOURCES: Record<string, () => Promise<Source>> = {
  Redis: async () => {
    const redis = new Redis(await freshRedis())
    return {
      store: new RedisStore(redis),
      setBalance: (clientId, balance) => redis.hset(`stripe402:client:${clientId}`, { balance }),
      empty: () => redis.flushdb(),
      close: async () => redis.disconnect(),
    }
  },
  Postgres: async () => {
    const pool = new pg.Pool({ connectionString: await emptyDatabase() })
    const store = new PostgresStore(pool)
    await store.createTables()
    await pool.query('ALTER TABLE stripe402_clients ALTER balance TYPE numeric')
    return {
      store,
      setBalance: (id, balance) =>
        pool.query('UPDATE stripe402_clients SET balance = $2 WHERE client_id = $1', [id, balance]),
      empty: () => pool.query('TRUNCATE stripe402_clients, stripe402_transactions, stripe402_keys'),
      close: () => pool.end(),
    }
  },
}

let hf: Holdfast
let tenants = 0
/** Called for each entry that is in the journal, before anything else happens. */
let onEntry = () => {}
beforeAll(async () => {
  hf = await Holdfast.connect({
    redis: await freshRedis(),
    postgres: await freshDatabase(),
    telemetry: {
      count: (metric, labels) => {
        if (metric === 'holdfast_entries_total' && labels?.verdict === 'appended') onEntry()
      },
    },
  })
})
afterAll(() => hf.close())

describe.each(Object.entries(SOURCES))('from %s', (_, open) => {
  let source: Source
  let target: Holdfast
  beforeAll(async () => {
    source = await open()
  })
  afterAll(() => source.close())
  beforeEach(async () => {
    onEntry = () => {}
    await source.empty()
    tenants += 1
    target = hf.forTenant(`import-${tenants}`)
  })

  /** A client with these transactions, a minute apart: topped up where positive. */
  async function client(clientId: string, balance: number, amounts: readonly number[] = []): Promise<ClientRecord> {
    const createdAt = new Date(START_MS)
    const updatedAt = new Date(START_MS + 3_600_000)
    const record = { clientId, stripeCustomerId: `cus_${clientId}`, balance, currency: 'usd', createdAt, updatedAt }
    await source.store.createClient(record)
    for (const [n, amount] of amounts.entries()) await source.store.recordTransaction(transaction(clientId, n, amount))
    return record
  }

  const transaction = (clientId: string, n: number, amount: number): TransactionRecord => ({
    id: `${clientId}-${String(n).padStart(5, '0')}`,
    clientId,
    type: amount < 0 ? 'deduction' : 'topup',
    amount: Math.abs(amount),
    createdAt: new Date(START_MS + n * 60_000),
    ...(amount < 0 ? { resource: 'GET /api/joke' } : { stripePaymentIntentId: `pi_${n}` }),
  })

  /** What the two stores have, in the same order. */
  const contentOf = async (store: LedgerStore) => {
    const clients = (await allOf(store.listClients())).sort((a, b) => (a.clientId < b.clientId ? -1 : 1))
    const pages = clients.map(({ clientId }) => store.listTransactions(clientId, { order: 'oldest', limit: 1_000 }))
    return [clients, (await Promise.all(pages)).map(({ transactions }) => transactions)]
  }

  const expectSame = async () => {
    expect(await contentOf(new HoldfastStore(target))).toEqual(await contentOf(source.store))
    expect((await verifyStore(source.store)).clients).toBeGreaterThan(0)
  }

  const none = { damaged: 0, unequal: 0, exists: 0, changed: 0, differs: 0 }

  it('every client and transaction comes once, as it was', async () => {
    await client('ann', 49_300, [50_000, -500, -200])
    await client('bob', 0)
    await client('cid', 0, [100, -100, 0])
    const report = await importStore(source.store, target)
    expect(report).toEqual({
      dryRun: false,
      clients: 3,
      imported: 3,
      before: 0,
      leftOut: 0,
      transactions: 6,
      adjusted: 0,
      adjustedAbove: 0n,
      adjustedBelow: 0n,
      balances: { store: 49_300n, wallets: 49_300n },
      counts: none,
      findings: [],
    } satisfies ImportReport)
    await expectSame()
    const entries = await target.wallet('stripe402:ann').entries()
    expect(entries.map(({ kind, amount, available }) => [kind, amount, available])).toEqual([
      ['credit', 50_000, 50_000],
      ['debit', 500, 49_500],
      ['debit', 200, 49_300],
    ])
  })

  it('is a store that goes on from there', async () => {
    await client('ann', 49_300, [50_000, -500, -200])
    await importStore(source.store, target)
    const store = new HoldfastStore(target)
    const again = transaction('ann', 1, -500)
    expect(await store.move(again)).toBe(49_500)
    expect(await store.move({ ...again, id: randomUUID() })).toBe(48_800)
    expect((await store.getClient('ann'))?.updatedAt.getTime()).toBeGreaterThan(START_MS + 3_600_000)
    // What was spent since is no difference.
    expect(await importStore(source.store, target)).toMatchObject({ imported: 0, before: 1, leftOut: 0, counts: none })
    expect((await store.getClient('ann'))?.balance).toBe(48_800)
  })

  it('a dry run tells the same and changes nothing', async () => {
    await client('ann', 49_300, [50_000, -500, -200])
    await client('odd', 5)
    const dry = await importStore(source.store, target, { dryRun: true })
    expect(dry).toMatchObject({ dryRun: true, clients: 2, imported: 2, transactions: 3, adjusted: 1, balances: null })
    expect(await target.wallets()).toEqual([])
    const { dryRun, balances, ...told } = await importStore(source.store, target)
    expect({ ...told, dryRun: true, balances: null }).toEqual(dry)
    expect(await importStore(source.store, target, { dryRun: true })).toMatchObject({ imported: 0, before: 2 })
    await client('new', 0)
    expect(await importStore(source.store, target)).toMatchObject({ imported: 1, before: 2 })
    expect(await importStore(source.store, target)).toMatchObject({ imported: 0, before: 3 })
  })

  it.each<[string, number, readonly number[], string]>([
    ['more than its transactions', 700, [1_000, -500], 'above'],
    ['less than its transactions', 300, [1_000, -500], 'below'],
    ['and no transaction at all', 700, [], 'above'],
    ['though a top-up is missing on the way', 600, [-100, -300, 1_000], 'unadjusted'],
    ['and a top-up missing on the way, and less than they come to', 100, [-100, -300, 1_000], 'below'],
  ])('a client with a balance, %s, ends with its balance, and it is told', async (_, balance, amounts, kind) => {
    await client('odd', balance, amounts)
    const report = await importStore(source.store, target)
    const sum = amounts.reduce((all, one) => all + one, 0)
    const difference = BigInt(Math.abs(balance - sum))
    expect(report).toMatchObject({
      imported: 1,
      leftOut: 0,
      adjusted: kind === 'unadjusted' ? 0 : 1,
      adjustedAbove: kind === 'above' ? difference : 0n,
      adjustedBelow: kind === 'below' ? difference : 0n,
      balances: { store: BigInt(balance), wallets: BigInt(balance) },
      counts: { ...none, unequal: kind === 'unadjusted' ? 0 : 1 },
    })
    if (kind !== 'unadjusted') expect(report.findings[0]).toMatchObject({ kind: 'unequal', client: 'odd' })
    await expectSame()
    expect(await importStore(source.store, target)).toMatchObject({ imported: 0, before: 1, leftOut: 0 })
  })

  it('of a top-up and a deduction at the same moment the top-up comes first, whatever their ids are', async () => {
    await client('ann', 400)
    const [topup, deduction] = [transaction('ann', 2, 500), transaction('ann', 1, -100)]
    await source.store.recordTransaction({ ...deduction, createdAt: topup.createdAt })
    await source.store.recordTransaction(topup)
    expect(await importStore(source.store, target)).toMatchObject({ imported: 1, adjusted: 0 })
    const entries = await target.wallet('stripe402:ann').entries()
    expect(entries.map(({ kind, amount }) => [kind, amount])).toEqual([
      ['credit', 500],
      ['debit', 100],
    ])
    await expectSame()
  })

  it('what can not be read is left out and told, and the rest comes', async () => {
    await client('ann', 5, [5])
    await client('bad', 5, [5])
    await source.setBalance('bad', '10.5')
    const report = await importStore(source.store, target)
    expect(report).toMatchObject({ clients: 2, imported: 1, leftOut: 1, counts: { ...none, damaged: 1 } })
    expect(report.findings).toEqual([
      { kind: 'damaged', client: 'bad', text: expect.stringMatching(/^balance: .*fraction$/) },
    ])
    expect(await target.wallet('stripe402:bad').get()).toBeNull()
    expect(report.balances).toEqual({ store: 5n, wallets: 5n })
  })

  it('what no wallet can be called, or no entry can keep, is left out as a whole', async () => {
    await client('ann', 5, [5])
    await client('c'.repeat(250), 5)
    await client('long', 5, [5])
    await source.store.recordTransaction({ ...transaction('long', 1, -1), resource: 'x'.repeat(5_000) })
    const report = await importStore(source.store, target)
    expect(report).toMatchObject({ clients: 3, imported: 1, leftOut: 2, counts: { ...none, damaged: 2 } })
    expect((await target.wallets()).map(({ id }) => id)).toEqual(['stripe402:ann'])
  })

  it('a wallet that is there already is left alone', async () => {
    await client('ann', 5, [5])
    await client('own', 5, [5])
    await new HoldfastStore(target).createClient({ ...(await client('own', 5)), balance: 70 })
    await target.wallet('stripe402:eur').open({ currency: 'eur' })
    await client('eur', 5, [5])
    const report = await importStore(source.store, target)
    expect(report).toMatchObject({ clients: 3, imported: 1, leftOut: 2, counts: { ...none, exists: 2 } })
    expect((await target.wallet('stripe402:own').get())?.available).toBe(70)
    expect((await target.wallet('stripe402:eur').get())?.seq).toBe(0)
  })

  it('that was stopped goes on where it was, and a client is not there before it is complete', async () => {
    const many = Array.from({ length: 700 }, (_, n) => (n % 2 === 0 ? 100 : -50))
    await client('big', 17_500, many)
    const stop = new AbortController()
    const wallet = target.wallet('stripe402:big')
    let filed = 0
    onEntry = () => {
      filed += 1
      if (filed === 64) stop.abort()
    }
    expect(await codeOf(importStore(source.store, target, { signal: stop.signal }))).toBe('aborted')
    const { seq } = (await wallet.get()) as { seq: number }
    expect(seq).toBeGreaterThanOrEqual(64)
    expect(seq).toBeLessThan(700)
    expect(await codeOf(new HoldfastStore(target).getClient('big'))).toBe('unavailable')
    expect(await importStore(source.store, target, { dryRun: true })).toMatchObject({ imported: 1, before: 0 })
    expect(await importStore(source.store, target)).toMatchObject({ imported: 1, before: 0, transactions: 700 })
    expect((await wallet.get())?.seq).toBe(700)
    await expectSame()
  })

  it('that is stopped begins with no further client', async () => {
    for (let n = 0; n < 300; n += 1) await client(`c${n}`, 0)
    const stop = new AbortController()
    const onProgress = () => stop.abort()
    expect(await codeOf(importStore(source.store, target, { signal: stop.signal, onProgress }))).toBe('aborted')
    expect((await target.wallets({ limit: 300 })).length).toBeLessThan(200)
    expect(await importStore(source.store, target)).toMatchObject({ clients: 300, leftOut: 0 })
  })

  it('goes on when its connections are cut, and brings everything once', async () => {
    for (let n = 0; n < 30; n += 1) await client(`c${n}`, 300, Array(30).fill(10))
    const databaseUrl = await freshDatabase()
    const proxy = await startProxy(Number(new URL(databaseUrl).port))
    const address = Object.assign(new URL(databaseUrl), { port: String(proxy.port) })
    const shaky = await Holdfast.connect({ redis: await freshRedis(), postgres: address.href, audit: false })
    let cuts = 0
    const report = await importStore(source.store, shaky, {
      onProgress: ({ clients }) => {
        if (clients % 10 !== 0) return
        cuts += 1
        proxy.cut()
      },
    })
    expect(cuts).toBeGreaterThan(2)
    expect(report).toMatchObject({ imported: 30, leftOut: 0, transactions: 900, counts: none })
    expect(report.balances).toEqual({ store: 9_000n, wallets: 9_000n })
    // The last cut may have left connections that nobody has found out about yet.
    await vi.waitFor(async () => expect((await shaky.wallet('stripe402:c0').get())?.seq).toBe(30), { timeout: 20_000 })
    await shaky.close()
    await proxy.close()
  }, 120_000)

  it('by two at once is done once', async () => {
    for (let n = 0; n < 20; n += 1) await client(`c${n}`, 450, [500, -50])
    const reports = await Promise.all([importStore(source.store, target), importStore(source.store, target)])
    for (const report of reports) {
      expect(report).toMatchObject({ clients: 20, leftOut: 0, balances: { store: 9_000n, wallets: 9_000n } })
    }
    await expectSame()
  })

  it('a client that changed since is told, and left as it was imported', async () => {
    await client('ann', 500, [500])
    await importStore(source.store, target)
    await source.store.move(transaction('ann', 1, -100))
    const report = await importStore(source.store, target)
    expect(report).toMatchObject({ imported: 0, before: 0, leftOut: 1, counts: { ...none, changed: 1 } })
    expect((await target.wallet('stripe402:ann').get())?.available).toBe(500)
  })

  it('a store that is in use meanwhile is found out at the end', async () => {
    await client('ann', 500, [500])
    let changed: Promise<unknown> | undefined
    const report = await importStore(source.store, target, {
      onProgress: ({ comparing }) => {
        if (!comparing) changed ??= source.setBalance('ann', '400')
      },
    })
    await changed
    // The last look may have come before it: then nothing is wrong with what was compared.
    const differs = report.balances?.store === 400n ? 1 : 0
    expect(report.counts.differs).toBe(differs)
    expect(report.balances?.wallets).toBe(500n)
  })

  it('a client that comes while it runs, and whose wallet is not ours, is told and does not end it', async () => {
    await client('ann', 500, [500])
    await target.wallet('stripe402:late').open({ currency: 'usd', metadata: 'of others' })
    const report = await importStore(
      afterFirstWalk(source.store, () => client('late', 5)),
      target,
    )
    expect(report).toMatchObject({ imported: 1, leftOut: 0, counts: { ...none, differs: 1 } })
    expect(report.findings).toEqual([
      { kind: 'differs', client: 'late', text: '5 in the store, and not imported completely' },
    ])
  })

  it('verify tells which balances are not what their transactions come to', async () => {
    await client('ann', 49_300, [50_000, -500, -200])
    await client('odd', 7, [5])
    await client('bad', 5, [5])
    await source.setBalance('bad', '-3')
    expect(await verifyStore(source.store)).toEqual({
      clients: 2,
      transactions: 4,
      balances: 49_307n,
      topups: 50_005n,
      deductions: 700n,
      counts: { ...none, unequal: 1, damaged: 1 },
      findings: expect.arrayContaining([
        { kind: 'unequal', client: 'odd', text: 'the balance is 2 above what its transactions come to' },
        { kind: 'damaged', client: 'bad', text: expect.stringContaining('balance') },
      ]),
    })
  })
})

/** The store, to which something happens when all its clients were walked over once. */
function afterFirstWalk(store: LedgerStore, happens: () => Promise<unknown>): LedgerStore {
  const listTransactions = store.listTransactions.bind(store)
  let walks = 0
  async function* listClients(options?: ListClientsOptions) {
    yield* store.listClients(options)
    walks += 1
    if (walks === 1) await happens()
  }
  return { listTransactions, listClients } as Partial<LedgerStore> as LedgerStore
}
