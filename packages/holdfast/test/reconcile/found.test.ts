import { Redis } from 'ioredis'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { freshDatabase, freshRedis, sharedCluster } from '../../../../test/servers.js'
import { type ConnectOptions, Holdfast, type LostEntry, type Wallet } from '../../src/index.js'
import { NO_REDIS, refusal, until } from '../api/support/paths.js'
import { startProxy } from '../redis/support/proxy.js'
import { Dump } from './support/dump.js'
import { onceLifted } from './support/lifted.js'

/** Who finds out that Postgres lacks something, and by what. */
let redis: string
let postgres: string
let raw: Redis
let open: Holdfast[]

beforeEach(async () => {
  redis = await freshRedis()
  postgres = await freshDatabase()
  raw = new Redis(redis)
  open = []
})
afterEach(async () => {
  raw.disconnect()
  await Promise.all(open.map((hf) => hf.close()))
})

async function connect(options: Partial<ConnectOptions> = {}): Promise<Holdfast> {
  const engine = { sweepEveryMs: 600_000, proveEveryMs: 100, witnessEveryMs: 10 }
  // What is decided while Redis is taken to be away is nothing that Redis would remember.
  const redisOptions = { commandTimeoutMs: 20_000 }
  const hf = await Holdfast.connect({ redis, postgres, timeout: 20_000, redisOptions, engine, ...options })
  open.push(hf)
  return hf
}

async function close(hf: Holdfast): Promise<void> {
  open = open.filter((one) => one !== hf)
  await hf.close()
}

async function openWallet(hf: Holdfast): Promise<Wallet> {
  const wallet = hf.wallet('w')
  await wallet.open({ currency: 'usd' })
  await wallet.credit(100, { key: 'in' })
  return wallet
}

/** A wallet with something in it, a backup, and then operations that only Redis and this process remember. */
async function loseThree(hf: Holdfast): Promise<() => Promise<void>> {
  const wallet = await openWallet(hf)
  const dump = await Dump.take(postgres)
  for (let n = 0; n < 3; n += 1) await wallet.debit(1, { key: `lost ${n}` })
  await until(async () => (await raw.exists(await witnessesKey())) === 1)
  await new Promise((resolve) => setTimeout(resolve, 30))
  return () => dump.load()
}

async function query(sql: string, values: unknown[]): Promise<pg.QueryResult> {
  const client = new pg.Client(postgres)
  await client.connect()
  try {
    return await client.query(sql, values)
  } finally {
    await client.end()
  }
}

const witnessesKey = async (): Promise<string> => (await raw.keys('hf:*:witnesses:*'))[0] ?? 'none yet'

/** After the operator has acted. */
const debit = (hf: Holdfast, id: string, key: string, amount = 1) =>
  onceLifted(() => hf.wallet(id).debit(amount, { key }))

const isStopped = (hf: Holdfast) => () => hf.health().stopped !== null

describe('that it was put back is found', () => {
  it('under connections that live on, by who asks now and then', async () => {
    const hf = await connect()
    const lose = await loseThree(hf)
    await lose()
    await until(isStopped(hf))
    expect(await refusal(hf.wallet('w').debit(1, { key: 'a' }))).toMatchObject({ code: 'reconcile_required' })
  })

  it('by a process that has nothing to do itself', async () => {
    const [hf, idle] = [await connect(), await connect()]
    const lose = await loseThree(hf)
    await close(hf)
    await lose()
    await until(isStopped(idle))
  })

  it('by one that starts afterwards, in a database that was made from the backup', async () => {
    const hf = await connect()
    const wallet = await openWallet(hf)
    await close(hf)
    const copy = new URL(postgres)
    copy.pathname += '_copy'
    const operator = new pg.Client(Object.assign(new URL(postgres), { pathname: '/postgres' }).href)
    await operator.connect()
    await operator.query(`CREATE DATABASE ${copy.pathname.slice(1)} TEMPLATE ${new URL(postgres).pathname.slice(1)}`)
    await operator.end()
    const again = await connect()
    await again.wallet(wallet.id).debit(1, { key: 'lost' })
    await close(again)
    const restored = await connect({ postgres: copy.href })
    expect(restored.health().stopped).toMatch(/was acknowledged and is missing/)
    expect(await refusal(restored.wallet(wallet.id).debit(1, { key: 'a' }))).toMatchObject({
      code: 'reconcile_required',
    })
  })

  it('by a process alone, when Redis was flushed at the same time', async () => {
    const hf = await connect()
    const lose = await loseThree(hf)
    await raw.flushdb()
    await lose()
    await until(isStopped(hf))
    const report = await hf.reconcile()
    expect(report).toMatchObject({ needed: true, done: true, wallets: 0, entries: 0 })
    expect(await debit(hf, 'w', 'a')).toMatchObject({ available: 99 })
  })

  it('by the state of a wallet in Redis alone, when nobody else is left who knows', async () => {
    const hf = await connect()
    const lose = await loseThree(hf)
    // The last one is told to Redis as acknowledged with the next command.
    await hf.wallet('w').debit(1, { key: 'lost 3' })
    await close(hf)
    await raw.del(await witnessesKey())
    await lose()
    const later = await connect()
    expect(later.health().stopped).toBeNull()
    expect(await refusal(later.wallet('w').debit(1, { key: 'a' }))).toMatchObject({ code: 'reconcile_required' })
    const lost: LostEntry[] = []
    const report = await later.reconcile({ onEntry: (entry) => void lost.push(entry) })
    expect(report).toMatchObject({ done: true, acknowledged: 3 })
    expect(lost.map(({ key }) => key)).toEqual([
      'lost 0',
      'lost 1',
      'lost 2',
      'lost 3',
      ...lost.slice(4).map(({ key }) => key),
    ])
  })

  it('by who told a caller of it after looking it up, without having appended anything or having seen Redis', async () => {
    const hf = await connect()
    const lose = await loseThree(hf)
    await close(hf)
    await raw.flushdb()
    const blind = await connect({ redis: NO_REDIS })
    // From here on it does not ask Redis first.
    expect(await refusal(blind.wallet('w').debit(1_000, { key: 'too much' }))).toMatchObject({
      code: 'insufficient_funds',
    })
    expect(await blind.wallet('w').debit(1, { key: 'lost 2' })).toMatchObject({ replayed: true })
    await lose()
    await until(isStopped(blind))
  })

  it('by one that starts afterwards, whatever else somebody has written beside what is known', async () => {
    const hf = await connect()
    const lose = await loseThree(hf)
    await raw.hset(await witnessesKey(), 'nobody', 'something', 'nothing', '')
    await close(hf)
    await lose()
    const later = await connect()
    expect(later.health().stopped).toMatch(/was acknowledged and is missing/)
  })

  it('through a pool that was brought', async () => {
    const pool = new pg.Pool({ connectionString: postgres })
    const hf = await connect({ postgres: pool })
    const lose = await loseThree(hf)
    await lose()
    await until(isStopped(hf))
    expect(await hf.reconcile()).toMatchObject({ done: true, acknowledged: 3 })
    expect(await debit(hf, 'w', 'a')).toMatchObject({ available: 99 })
    await close(hf)
    await pool.end()
  })
})

describe('that nothing can be told', () => {
  it('when Redis was flushed and no process lived through it: things go on from what Postgres has', async () => {
    const hf = await connect()
    const lose = await loseThree(hf)
    await close(hf)
    await raw.flushdb()
    await lose()
    const later = await connect()
    expect(await later.wallet('w').debit(1, { key: 'lost 0' })).toMatchObject({ replayed: false, available: 99 })
    expect(await later.reconcile()).toMatchObject({ needed: false })
  })

  it('by a state in Redis that somebody has damaged: it says nothing about Postgres', async () => {
    const hf = await connect()
    const wallet = await openWallet(hf)
    await wallet.debit(1, { key: 'a' })
    await wallet.debit(1, { key: 'b' })
    const [key] = await raw.keys('hf:*:wallet:*')
    const core = (await raw.hgetBuffer(key as string, 'core')) as Buffer
    // The life, and the head: a state that nobody believes, and that names what never was.
    core.fill('x', 3 + 14 * 8, 3 + 14 * 8 + 32 + 40)
    await raw.hset(key as string, 'core', core)
    expect(await wallet.debit(1, { key: 'c' })).toMatchObject({ available: 97 })
    expect(hf.health().stopped).toBeNull()
  })
})

describe('reconciling', () => {
  it('leaves everything stopped when it dies in the middle, and does all of it the next time', async () => {
    const hf = await connect()
    const lose = await loseThree(hf)
    await lose()
    await until(isStopped(hf))
    const seen: string[] = []
    const failing = hf.reconcile({
      onEntry: ({ key }) => {
        seen.push(key)
        if (seen.length === 2) throw new Error('the disk is full')
      },
    })
    await expect(failing).rejects.toThrow('the disk is full')
    expect(await refusal(hf.wallet('w').debit(1, { key: 'a' }))).toMatchObject({ code: 'reconcile_required' })
    const beforeGoingOn = hf.reconcile({
      onExported: () => Promise.reject(new Error('not on disk')),
    })
    await expect(beforeGoingOn).rejects.toThrow('not on disk')
    expect(hf.health().stopped).not.toBeNull()
    const lost: LostEntry[] = []
    expect(await hf.reconcile({ onEntry: (entry) => void lost.push(entry) })).toMatchObject({
      done: true,
      acknowledged: 3,
    })
    expect(lost).toHaveLength(3)
    expect(await debit(hf, 'w', 'a')).toMatchObject({ available: 99 })
  })

  it('hands out all that can be read of wallets that somebody has damaged, and goes past the others', async () => {
    const hf = await connect()
    for (const id of ['sound', 'without numbers']) {
      await hf.wallet(id).open({ currency: 'usd' })
      await hf.wallet(id).credit(100, { key: 'in' })
    }
    const lose = await loseThree(hf)
    const keyOf = async (id: string) => {
      const { rows } = await query('SELECT ref FROM holdfast.wallets WHERE id = $1', [id])
      return (await raw.keys(`hf:*:wallet:*:${rows[0].ref.replaceAll('-', '')}`))[0] as string
    }
    // Its second lost entry; and of another wallet every number.
    await raw.hset(await keyOf('w'), 'e:3', 'damaged')
    const core = (await raw.hgetBuffer(await keyOf('without numbers'), 'core')) as Buffer
    await raw.hset(await keyOf('without numbers'), 'core', core.fill(255, 3, 3 + 14 * 8))
    await lose()
    await until(isStopped(hf))
    const lost: LostEntry[] = []
    const report = await hf.reconcile({ onEntry: (entry) => void lost.push(entry) })
    expect(report).toMatchObject({ done: true, walletsAhead: 1, entries: 2, forgotten: 1 })
    expect(lost.map(({ key }) => key)).toEqual(['lost 0', 'lost 2'])
    for (const id of ['w', 'sound', 'without numbers']) {
      expect(await debit(hf, id, 'after')).toMatchObject({ available: 99 })
    }
  })

  it('twice at once, under callers who do not stop asking, is as good as once', async () => {
    const [hf, other] = [await connect(), await connect()]
    const lose = await loseThree(hf)
    await lose()
    await until(isStopped(hf))
    const answers = new Map<string, number>()
    let over = false
    const callers = [hf, other, hf, other].map(async (from, caller) => {
      for (let n = 0; !over || n < 20; n += 1) {
        const answer = await from
          .wallet('w')
          .credit(1, { key: `${caller} ${n}` })
          .then(
            () => 'yes',
            ({ code }) => String(code),
          )
        answers.set(answer, (answers.get(answer) ?? 0) + 1)
        await new Promise((resolve) => setTimeout(resolve, 1))
      }
    })
    const reports = await Promise.all([hf.reconcile(), other.reconcile()])
    expect(reports.some(({ done }) => done)).toBe(true)
    await until(async () => hf.health().stopped === null && other.health().stopped === null)
    await until(() => (answers.get('yes') ?? 0) > 100)
    over = true
    await Promise.all(callers)
    expect([...answers.keys()].filter((answer) => !['yes', 'reconcile_required'].includes(answer))).toEqual([])
    expect(await hf.wallet('w').get()).toMatchObject({ available: 100 + (answers.get('yes') as number) })
  })

  it('what a process held on to all the while never gets in, and its caller hears the truth', async () => {
    const { port } = new URL(postgres)
    const proxy = await startProxy(Number(port))
    const url = Object.assign(new URL(postgres), { port: String(proxy.port) }).href
    const [hf, paused] = [await connect(), await connect({ postgres: url, timeout: 60_000 })]
    // It knows the Redis that decides, so that the first call for another wallet is decided at once.
    await paused.wallet('other').open({ currency: 'usd' })
    await paused.wallet('other').credit(1, { key: 'in' })
    const lose = await loseThree(hf)
    // Decided in Redis, and on its way to Postgres when it stops.
    const isHeld = proxy.holdAt('holdfast_append')
    const held = paused.wallet('w').debit(7, { key: 'held' })
    await isHeld
    await lose()
    await until(isStopped(hf))
    const lost: LostEntry[] = []
    await hf.reconcile({ onEntry: (entry) => void lost.push(entry) })
    expect(lost.at(-1)).toMatchObject({ key: 'held', acknowledged: 'perhaps' })
    expect(await debit(hf, 'w', 'after')).toMatchObject({ available: 99, entry: { seq: 2 } })
    proxy.behave()
    // It starts anew, from what Postgres has.
    expect(await held).toMatchObject({ available: 92, replayed: false, entry: { seq: 3 } })
    expect((await hf.wallet('w').entries()).map(({ key }) => key)).toEqual(['in', 'after', 'held'])
    await close(paused)
    await proxy.close()
  }, 120_000)

  it('goes through all masters of a Cluster, and leaves wallets of other databases on it alone', async () => {
    const cluster = { cluster: await sharedCluster() }
    const other = await connect({ redis: cluster, postgres: await freshDatabase() })
    const beside = await openWallet(other)
    const hf = await connect({ redis: cluster })
    const wallets = await Promise.all(
      Array.from({ length: 12 }, async (_, n) => {
        const wallet = hf.wallet(`w${n}`)
        await wallet.open({ currency: 'usd' })
        await wallet.credit(100, { key: 'in' })
        return wallet
      }),
    )
    const dump = await Dump.take(postgres)
    for (const wallet of wallets) await wallet.debit(1, { key: 'lost' })
    await dump.load()
    await until(isStopped(hf))
    const lost: LostEntry[] = []
    const report = await hf.reconcile({ onEntry: (entry) => void lost.push(entry) })
    expect(report).toMatchObject({ done: true, wallets: 12, walletsAhead: 12, entries: 12 })
    expect(lost.map(({ wallet }) => wallet).sort()).toEqual(wallets.map(({ id }) => id).sort())
    for (const { id } of wallets) expect(await debit(hf, id, 'lost', 2)).toMatchObject({ available: 98 })
    expect(other.health().stopped).toBeNull()
    expect(await beside.debit(1, { key: 'beside' })).toMatchObject({ available: 99 })
  })

  it('does nothing while all is well, whatever is on its way', async () => {
    const hf = await connect()
    const wallet = await openWallet(hf)
    const busy = Array.from({ length: 100 }, (_, n) => wallet.credit(1, { key: `${n}`, durability: 'memory' }))
    expect(await hf.reconcile()).toMatchObject({ needed: false, done: false, walletsAhead: expect.any(Number) })
    await Promise.all(busy)
    expect(hf.health().stopped).toBeNull()
  })

  it('keeps what was acknowledged from memory and had not reached the journal', async () => {
    // Its end waits for so long for what it can not file.
    const hf = await connect({ timeout: 4_000 })
    const wallet = await openWallet(hf)
    await wallet.credit(1, { key: 'marks it', durability: 'memory' })
    await until(() => hf.health().backlog === 0)
    const dump = await Dump.take(postgres)
    await wallet.debit(2, { key: 'lost' })
    const lock = new pg.Client(postgres)
    await lock.connect()
    await lock.query('BEGIN; LOCK TABLE holdfast.wallets IN SHARE MODE')
    await wallet.debit(5, { key: 'from memory', durability: 'memory' })
    await close(hf)
    await lock.end()
    await dump.load()
    const later = await connect()
    expect(later.health().stopped).not.toBeNull()
    const lost: LostEntry[] = []
    await later.reconcile({ onEntry: (entry) => void lost.push(entry) })
    expect(lost).toMatchObject([
      { key: 'lost', acknowledged: 'yes', decidedAgain: false },
      { key: 'from memory', acknowledged: 'memory', decidedAgain: true },
    ])
    const after = await onceLifted(() => later.wallet('w').credit(1, { key: 'after' }))
    expect(after).toMatchObject({ available: 97 })
    expect((await later.wallet('w').entries()).map(({ key }) => key)).toEqual([
      'in',
      'marks it',
      'from memory',
      'after',
    ])
  })
})
