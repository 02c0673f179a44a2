import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { freshRedis } from '../../../../test/servers.js'
import { Holdfast, type LostEntry, type Receipt, type Wallet } from '../../src/index.js'
import { refusal } from '../api/support/paths.js'
import { onceLifted } from './support/lifted.js'
import { RestorablePostgres } from './support/restorable.js'

/** Postgres goes back to how it was, while processes and Redis remember what it acknowledged since. */
let postgres: RestorablePostgres
let redis: string
let schema: string
let schemas = 0
let open: Holdfast[]
let raw: Redis
let events: string[]

beforeAll(async () => {
  postgres = await RestorablePostgres.start()
})
afterAll(() => postgres.stop())
beforeEach(async () => {
  redis = await freshRedis()
  raw = new Redis(redis)
  schemas += 1
  schema = `restored_${schemas}`
  open = []
  events = []
})
afterEach(async () => {
  raw.disconnect()
  await Promise.all(open.map((hf) => hf.close()))
})

async function connect(): Promise<Holdfast> {
  const hf = await Holdfast.connect({
    redis,
    postgres: postgres.url,
    schema,
    timeout: 20_000,
    // What is decided while Redis is taken to be away is nothing that Redis would remember.
    redisOptions: { commandTimeoutMs: 20_000 },
    engine: { sweepEveryMs: 600_000, proveEveryMs: 300 },
    telemetry: { log: (_level, event) => void events.push(event) },
  })
  open.push(hf)
  return hf
}

async function openWallet(hf: Holdfast, id: string): Promise<Wallet> {
  const wallet = hf.wallet(id)
  await wallet.open({ currency: 'usd' })
  await wallet.credit(100, { key: 'in' })
  return wallet
}

/** Tried again as callers do, while the server comes up. */
async function settled<T>(call: () => Promise<T>): Promise<T | { code: string }> {
  for (;;) {
    const answer = await call().catch((error: { code: string }) => error)
    const code = (answer as { code?: string }).code
    if (code !== 'unavailable' && code !== 'timeout') return answer
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

async function reconcile(
  hf: Holdfast,
): Promise<{ lost: LostEntry[]; report: Awaited<ReturnType<Holdfast['reconcile']>> }> {
  const lost: LostEntry[] = []
  const report = await hf.reconcile({ onEntry: (entry) => void lost.push(entry) })
  return { lost, report }
}

const LOSING = [
  ['its files are put back', 'same', () => postgres.putBack()],
  ['a replica that missed commits is promoted', 'another', () => postgres.promote('snapshot')],
  ['it is recovered to a point in time', 'another', () => postgres.recover()],
] as const

describe.each(LOSING)('when %s', (_, timeline, lose) => {
  it('everybody stops, what is lost is handed out, and then all goes on from what Postgres has', async () => {
    const [hf, other] = [await connect(), await connect()]
    const cold = await openWallet(other, 'cold')
    const [coldKey] = await raw.keys('hf:*:wallet:*')
    const wallet = await openWallet(hf, 'hot')
    const kept = await wallet.debit(1, { key: 'kept' })
    await postgres.snapshot()
    const before = await postgres.timeline()
    const lost: Receipt[] = []
    for (let n = 0; n < 5; n += 1) lost.push((await settled(() => wallet.debit(1, { key: `lost ${n}` }))) as Receipt)
    lost.push((await wallet.hold(7, { key: 'lost hold', ttl: 3_600_000 })).receipt)
    // Only Postgres has this wallet: nobody but a witness of something else can tell that it may lack something too.
    await raw.del(coldKey as string)

    await lose()
    expect((await postgres.timeline()) === before).toBe(timeline === 'same')
    for (const [from, id] of [
      [hf, 'hot'],
      [other, 'cold'],
    ] as const) {
      const refused = await settled(() => from.wallet(id).debit(1, { key: 'after' }))
      expect(refused).toMatchObject({ code: 'reconcile_required', status: 503, retryable: true })
    }
    expect(events).toContain('journal_lacks_entries')
    expect(hf.health().stopped).toMatch(/was acknowledged and is missing/)
    expect(await refusal(wallet.credit(1, { key: 'm', durability: 'memory' }))).toMatchObject({
      code: 'reconcile_required',
    })
    expect(await refusal(hf.forTenant('another').wallet('w').open({ currency: 'usd' }))).toMatchObject({
      code: 'reconcile_required',
    })
    // What was lost is not told to have happened, though Redis remembers it.
    expect(await refusal(wallet.debit(1, { key: 'lost 0' }))).toMatchObject({ code: 'reconcile_required' })
    // Reading shows what Postgres has.
    expect(await wallet.get()).toMatchObject({ available: 99, reserved: 0 })

    for (const wrong of [{ dryrun: true }, { dryRun: 'yes' }, { onEntry: [] }] as never[]) {
      expect(await refusal(hf.reconcile(wrong))).toMatchObject({ code: 'invalid_argument' })
    }
    const dry = await hf.reconcile({ dryRun: true })
    expect(dry).toMatchObject({ needed: true, done: false, walletsAhead: 1, acknowledged: 6 })
    expect(await refusal(wallet.debit(1, { key: 'after' }))).toMatchObject({ code: 'reconcile_required' })

    const { lost: exported, report } = await reconcile(hf)
    expect(report).toMatchObject({ needed: true, done: true, walletsAhead: 1, acknowledged: 6, forgotten: 0 })
    expect(report.ahead).toMatchObject([
      { wallet: 'hot', tenant: 'default', journalSeq: 2, journalAvailable: 99, forgotten: 0 },
    ])
    const told = exported.filter(({ acknowledged }) => acknowledged === 'yes')
    expect(told.map(({ wallet, seq, key, kind, amount, hash }) => ({ wallet, seq, key, kind, amount, hash }))).toEqual(
      lost.map(({ entry: { seq, key, kind, amount, hash } }) => ({ wallet: 'hot', seq, key, kind, amount, hash })),
    )
    // What was decided in Redis before anybody knew is told apart: nobody heard a yes.
    expect(exported.filter((entry) => !told.includes(entry)).map(({ key }) => key)).toEqual(
      exported.length > told.length ? ['after'] : [],
    )

    // The lost key is decided anew; the kept one is what it was.
    const debit = (from: Wallet, key: string) => onceLifted(() => from.debit(1, { key }))
    expect(await debit(wallet, 'lost 0')).toMatchObject({ replayed: false, available: 98 })
    expect(await debit(wallet, 'kept')).toMatchObject({ replayed: true, entry: { hash: kept.entry.hash } })
    expect(await debit(cold, 'after')).toMatchObject({ available: 99 })
    expect(await debit(other.wallet('hot'), 'after')).toMatchObject({ available: 97 })
    expect(await reconcile(other)).toMatchObject({ lost: [], report: { needed: false, done: false } })
    expect((await wallet.entries()).map(({ seq, key }) => `${seq} ${key}`)).toEqual([
      '1 in',
      '2 kept',
      '3 lost 0',
      '4 after',
    ])
  }, 120_000)
})

const KEEPING = [
  ['it crashes', () => postgres.crash()],
  ['a replica that has everything is promoted', () => postgres.promote('data')],
] as const

describe.each(KEEPING)('when %s', (_, fail) => {
  it('nothing is missing, and nothing stops', async () => {
    const hf = await connect()
    const wallet = await openWallet(hf, 'w')
    const told: Receipt[] = []
    for (let n = 0; n < 5; n += 1) told.push(await wallet.debit(1, { key: `told ${n}` }))
    await fail()
    expect(await settled(() => wallet.debit(1, { key: 'after' }))).toMatchObject({
      available: 94,
      durability: 'ledger',
    })
    for (const { entry } of told) {
      expect(await wallet.debit(1, { key: entry.key })).toMatchObject({ replayed: true, entry: { hash: entry.hash } })
    }
    expect(hf.health()).toMatchObject({ stopped: null, postgres: 'up' })
    expect(events).not.toContain('journal_lacks_entries')
    expect(await hf.reconcile()).toMatchObject({ needed: false, acknowledged: 0, forgotten: 0 })
  }, 120_000)
})
