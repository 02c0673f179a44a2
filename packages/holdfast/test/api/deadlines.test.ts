import { getEventListeners } from 'node:events'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { Holdfast, type Wallet } from '../../src/index.js'
import { type FaultyProxy, startProxy } from '../redis/support/proxy.js'
import { NO_REDIS, refusal, until } from './support/paths.js'

/** Postgres falls silent when told to: what is decided then waits for its append. */
describe.each(['Redis', 'Postgres'] as const)('on the %s path', (name) => {
  let proxy: FaultyProxy
  let hf: Holdfast
  let options: { redis: string; postgres: string }
  let wallets = 0

  const connect = (engine = {}) => Holdfast.connect({ ...options, engine: { sweepEveryMs: 600_000, ...engine } })

  beforeAll(async () => {
    const database = await freshDatabase()
    proxy = await startProxy(Number(new URL(database).port))
    options = {
      redis: name === 'Redis' ? await freshRedis() : NO_REDIS,
      postgres: Object.assign(new URL(database), { port: String(proxy.port) }).href,
    }
    hf = await connect()
  })
  afterAll(async () => {
    proxy.behave()
    await hf.close()
    await proxy.close()
  })

  async function filled(from = hf): Promise<Wallet> {
    wallets += 1
    const wallet = from.wallet(`wallet-${wallets}`)
    await wallet.open({ currency: 'usd' })
    await wallet.credit(100, { key: 'in' })
    return wallet
  }

  it('stops waiting at the timeout; the same key tells later what became of it', async () => {
    const wallet = await filled()
    proxy.hold()
    const started = Date.now()
    const error = await refusal(wallet.debit(30, { key: 'a', timeout: 100 }))
    expect(error).toMatchObject({ code: 'timeout', status: 504, retryable: true, timeoutMs: 100 })
    expect(Date.now() - started).toBeLessThan(8_000)
    proxy.behave()
    expect(await wallet.debit(30, { key: 'a' })).toMatchObject({ available: 70 })
    expect(await wallet.get()).toMatchObject({ available: 70, seq: 2 })
  })

  it('stops waiting when told to; the same key tells later what became of it', async () => {
    const wallet = await filled()
    proxy.hold()
    const controller = new AbortController()
    const call = refusal(wallet.debit(30, { key: 'a', signal: controller.signal }))
    setImmediate(() => controller.abort())
    expect(await call).toMatchObject({ code: 'aborted', status: 504, retryable: true })
    proxy.behave()
    expect(await wallet.debit(30, { key: 'a' })).toMatchObject({ available: 70 })
    expect(await wallet.get()).toMatchObject({ available: 70, seq: 2 })
  })

  it('does not even begin for a signal that has fired', async () => {
    const wallet = await filled()
    expect(await refusal(wallet.debit(30, { key: 'a', signal: AbortSignal.abort() }))).toMatchObject({
      code: 'aborted',
    })
    expect(await wallet.get({ pending: true })).toMatchObject({ available: 100, seq: 1 })
  })

  describe('a session that is known by its id alone', () => {
    const terms = { by: 'units', rate: 1, reserve: 10 } as const

    it.each(['tick', 'end', 'get'] as const)(
      'has its terms read for %s no longer than the caller waits',
      async (call) => {
        const wallet = await filled()
        await wallet.meter({ ...terms, key: 's' })
        const total = call !== 'get' && { total: 1 }
        proxy.hold()
        const started = Date.now()
        const timeout = { ...total, timeout: 200 }
        expect(await refusal(wallet.sessionRef('s')[call](timeout))).toMatchObject({ code: 'timeout', timeoutMs: 200 })
        const controller = new AbortController()
        const aborted = refusal(wallet.sessionRef('s')[call]({ ...total, signal: controller.signal }))
        setTimeout(() => controller.abort(), 50)
        expect(await aborted).toMatchObject({ code: 'aborted' })
        // Less than a connection to Postgres is waited for.
        expect(Date.now() - started).toBeLessThan(4_000)
        proxy.behave()
        expect(await wallet.sessionRef('s')[call]({ ...total })).toMatchObject({ charged: call === 'get' ? 0 : 1 })
      },
    )

    it.each(['tick', 'end', 'get'] as const)('has nothing read for %s with a signal that has fired', async (call) => {
      const wallet = await filled()
      const options = { ...(call !== 'get' && { total: 1 }), signal: AbortSignal.abort() }
      expect(await refusal(wallet.sessionRef('none')[call](options))).toMatchObject({ code: 'aborted' })
    })

    it('answers others who asked for the terms at the same time and have more patience', async () => {
      const wallet = await filled()
      await wallet.meter({ ...terms, key: 's' })
      const session = wallet.sessionRef('s')
      proxy.hold()
      const patient = session.tick({ total: 2 })
      expect(await refusal(session.tick({ total: 1, timeout: 100 }))).toMatchObject({ code: 'timeout' })
      proxy.behave()
      expect(await patient).toMatchObject({ charged: 2 })
    })
  })

  it('tells how a session ended no later than the caller waits', async () => {
    const wallet = await filled()
    const session = await wallet.meter({ by: 'units', rate: 1, reserve: 10, key: 's' })
    await session.end({ total: 1 })
    proxy.hold()
    const started = Date.now()
    expect(await refusal(session.tick({ total: 2, timeout: 200 }))).toMatchObject({ code: 'timeout', timeoutMs: 200 })
    expect(Date.now() - started).toBeLessThan(4_000)
    proxy.behave()
    expect(await session.tick({ total: 2 })).toMatchObject({ charged: 1, ended: true })
  })

  it('leaves no listener on a signal that outlives the call', async () => {
    const wallet = await filled()
    const controller = new AbortController()
    await wallet.debit(1, { key: 'a', signal: controller.signal })
    controller.abort()
    expect(await wallet.get()).toMatchObject({ available: 99 })
  })

  it('listens once to a signal of many calls, ends them all by it, and leaves no listener', async () => {
    const wallet = await filled()
    const other = await filled()
    const controller = new AbortController()
    const { signal } = controller
    const call = (n: number) => [
      wallet.debit(1, { key: `${n}`, signal }),
      hf.transfer(wallet.id, other.id, 1, { key: `${n}`, signal }),
      wallet.get({ signal }),
    ]
    const calls = Array.from({ length: 20 }, (_, n) => call(n)).flat()
    expect(getEventListeners(signal, 'abort')).toHaveLength(1)
    await Promise.all(calls)
    expect(getEventListeners(signal, 'abort')).toHaveLength(0)
    proxy.hold()
    const ended = Array.from({ length: 20 }, (_, n) => call(20 + n))
      .flat()
      .map((one) => refusal(one))
    controller.abort()
    for (const error of await Promise.all(ended)) expect(error).toMatchObject({ code: 'aborted' })
    expect(getEventListeners(signal, 'abort')).toHaveLength(0)
    proxy.behave()
  })

  it('answers what is under way when it is closed, and refuses what comes after', async () => {
    const other = await connect()
    const wallet = await filled(other)
    const calls = Array.from({ length: 50 }, (_, i) => wallet.debit(1, { key: `${i}` }))
    const closed = Promise.all([other.close(), other.close()])
    expect(await refusal(wallet.debit(1, { key: 'late' }))).toMatchObject({ code: 'unavailable', retryable: true })
    expect(await Promise.all(calls)).toHaveLength(50)
    await closed
    expect(await refusal(wallet.debit(1, { key: 'later' }))).toMatchObject({ code: 'unavailable' })
    expect(await refusal(wallet.get())).toMatchObject({ code: 'unavailable' })
    expect(await hf.wallet(wallet.id).get()).toMatchObject({ available: 50, seq: 51 })
    // Once more is no harm.
    await other.close()
  })

  it('refuses more at once than it has room for, and recovers', async () => {
    const small = await connect({ attemptsMax: 4 })
    const ten: Wallet[] = []
    while (ten.length < 10) ten.push(await filled(small))
    const calls = await Promise.allSettled(ten.map((wallet) => wallet.debit(1, { key: 'a' })))
    expect(calls.map(({ status }) => status)).toEqual([...Array(4).fill('fulfilled'), ...Array(6).fill('rejected')])
    expect((calls[4] as PromiseRejectedResult).reason).toMatchObject({ code: 'unavailable', retryable: true, limit: 4 })
    expect(await ten[4]?.debit(1, { key: 'a' })).toMatchObject({ available: 99 })
    await small.close()
  })

  it('leaves room for others beside a wallet that does not come on', async () => {
    const small = await connect({ attemptsMax: 16 })
    const [wallet, other] = [await filled(small), await filled(small)]
    const calls = await Promise.allSettled([
      ...Array.from({ length: 10 }, (_, i) => wallet.debit(1, { key: `${i}` })),
      other.debit(1, { key: 'a' }),
    ])
    const expected = [...Array(4).fill('fulfilled'), ...Array(6).fill('rejected'), 'fulfilled']
    expect(calls.map(({ status }) => status)).toEqual(expected)
    expect((calls[4] as PromiseRejectedResult).reason).toMatchObject({ code: 'unavailable', retryable: true, limit: 4 })
    expect(await wallet.debit(1, { key: '4' })).toMatchObject({ available: 95 })
    await small.close()
  })

  it('has room again after callers have given up', async () => {
    const small = await connect({ attemptsMax: 16 })
    const wallet = await filled(small)
    proxy.hold()
    await Promise.all(Array.from({ length: 4 }, (_, i) => refusal(wallet.debit(1, { key: `${i}`, timeout: 50 }))))
    proxy.behave()
    await until(async () => {
      const again = await Promise.allSettled([0, 1, 2, 3].map((i) => wallet.debit(1, { key: `${i}` })))
      return again.every(({ status }) => status === 'fulfilled')
    })
    expect(await wallet.get()).toMatchObject({ available: 96, seq: 5 })
    await small.close()
  })
})
