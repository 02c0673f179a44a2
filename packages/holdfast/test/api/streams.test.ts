import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { Holdfast, type HoldfastError, type SessionStream, type Wallet } from '../../src/index.js'
import { type FaultyProxy, startProxy } from '../redis/support/proxy.js'
import { onBothPaths, passes, refusal, until } from './support/paths.js'

/** 3 a unit, ten units at a time. */
const TERMS = { by: 'units', rate: 3, reserve: 10 } as const

/** A source that tells how far it was asked, and whether it was told to stop. */
class Tokens implements AsyncIterable<string> {
  made = 0
  stopped = false
  readonly #count: number
  readonly #before: (n: number) => unknown

  constructor(count: number, before: (n: number) => unknown = () => {}) {
    this.#count = count
    this.#before = before
  }

  async *[Symbol.asyncIterator]() {
    try {
      while (this.made < this.#count) {
        await this.#before(this.made)
        this.made += 1
        yield `token ${this.made}`
      }
    } finally {
      this.stopped = true
    }
  }
}

async function drain(stream: SessionStream<string>, most = Number.POSITIVE_INFINITY): Promise<string[]> {
  const got: string[] = []
  for await (const chunk of stream) {
    got.push(chunk)
    if (got.length >= most) break
  }
  return got
}

const charges = async (wallet: Wallet) =>
  (await wallet.entries({ limit: 1_000 })).filter(({ kind }) => kind === 'tick' || kind === 'settle')

onBothPaths((path) => {
  it('hands everything on, and ends with what was delivered', async () => {
    const wallet = await path.wallet(1_000)
    const session = await wallet.meter({ ...TERMS, key: 'chat' })
    const tokens = new Tokens(57)
    const stream = session.stream(tokens)
    expect(await drain(stream)).toEqual(Array.from({ length: 57 }, (_, n) => `token ${n + 1}`))
    expect(stream.delivered).toBe(57)
    expect(stream.state).toMatchObject({ charged: 171, ended: true, endedBy: 'end' })
    expect(await wallet.get()).toMatchObject({ available: 829, reserved: 0 })
    // Never more than one under way: so each one told more than the one before.
    const told = (await charges(wallet)).map(({ amount }) => amount)
    expect(told.slice(1, -1).every((amount) => amount > 0)).toBe(true)
    expect(told.length).toBeLessThanOrEqual(59)
  })

  it('counts units as it is told, and ticks as seldom as it is told', async () => {
    const wallet = await path.wallet(10_000)
    const session = await wallet.meter({ ...TERMS, reserve: 1_000, key: 'chat' })
    const stream = session.stream(new Tokens(20), { units: (chunk) => chunk.length, every: 1_000 })
    const text = (await drain(stream)).join('')
    expect(stream.delivered).toBe(text.length)
    expect(stream.state).toMatchObject({ charged: 3 * text.length })
    // The first tells what is there, the last ends it.
    expect((await charges(wallet)).map(({ kind }) => kind)).toEqual(['tick', 'settle'])
  })

  it('ends with what was delivered when the source fails, and tells its error', async () => {
    const wallet = await path.wallet(1_000)
    const session = await wallet.meter({ ...TERMS, key: 'chat' })
    const stream = session.stream(
      new Tokens(57, (n) => {
        if (n === 23) throw new Error('the model is gone')
      }),
    )
    await expect(drain(stream)).rejects.toThrow('the model is gone')
    expect(stream.state).toMatchObject({ charged: 69, endedBy: 'end' })
    expect(await wallet.get()).toMatchObject({ available: 931, reserved: 0 })
  })

  it('ends with what was delivered when the consumer stops, and stops the source', async () => {
    const wallet = await path.wallet(1_000)
    const session = await wallet.meter({ ...TERMS, key: 'chat' })
    const tokens = new Tokens(57)
    expect(await drain(session.stream(tokens), 12)).toHaveLength(12)
    expect(tokens).toMatchObject({ made: 12, stopped: true })
    expect(await session.get()).toMatchObject({ charged: 36, endedBy: 'end' })
  })

  it('ends with what was delivered when it is aborted, also while the source is silent', async () => {
    const wallet = await path.wallet(1_000)
    const session = await wallet.meter({ ...TERMS, key: 'chat' })
    const abort = new AbortController()
    const silence = new Tokens(57, (n) => (n === 9 ? new Promise(() => {}) : undefined))
    const stream = session.stream(silence, { signal: abort.signal })
    const drained = refusal(drain(stream))
    await until(() => stream.delivered === 9)
    abort.abort()
    expect(await drained).toMatchObject({ code: 'aborted' })
    expect(stream.state).toMatchObject({ charged: 27, endedBy: 'end' })
    expect(await wallet.get()).toMatchObject({ available: 973, reserved: 0 })
  })

  it('ends when it was aborted while the consumer was at work', async () => {
    const wallet = await path.wallet(1_000)
    const session = await wallet.meter({ ...TERMS, key: 'chat' })
    const abort = new AbortController()
    const tokens = new Tokens(57)
    const stream = session.stream(tokens, { signal: abort.signal })
    const work = async () => {
      for await (const chunk of stream) if (chunk === 'token 4') abort.abort()
    }
    expect(await refusal(work())).toMatchObject({ code: 'aborted' })
    expect(tokens).toMatchObject({ made: 4, stopped: true })
    expect(await session.get()).toMatchObject({ charged: 12, endedBy: 'end' })
  })

  it('stops the source when the money is used up, and delivers nothing that is not paid for', async () => {
    const wallet = await path.wallet(50)
    const session = await wallet.meter({ ...TERMS, key: 'chat' })
    const tokens = new Tokens(57)
    const stream = session.stream(tokens)
    expect(await refusal(drain(stream))).toMatchObject({ code: 'insufficient_funds', available: 0, delivered: 16 })
    expect(tokens).toMatchObject({ made: 16, stopped: true })
    expect(await session.get()).toMatchObject({ charged: 48, endedBy: 'end' })
    expect(await wallet.get()).toMatchObject({ available: 2, reserved: 0 })
  })

  it('goes on where the money comes in time', async () => {
    const wallet = await path.wallet(50)
    const session = await wallet.meter({ ...TERMS, key: 'chat' })
    const stream = session.stream(new Tokens(57, (n) => (n === 15 ? wallet.credit(500, { key: 'top-up' }) : undefined)))
    expect(await drain(stream)).toHaveLength(57)
    expect(await wallet.get()).toMatchObject({ available: 550 - 171, reserved: 0 })
  })

  it('that extends at the very end of what is reserved stops only for want of money', async () => {
    const wallet = await path.wallet(100)
    const session = await wallet.meter({ ...TERMS, extendAt: 1, key: 'chat' })
    expect(await refusal(drain(session.stream(new Tokens(57))))).toMatchObject({ code: 'insufficient_funds' })
    expect(await session.get()).toMatchObject({ charged: 99 })
  })

  it('keeps the session alive while the source is silent', async () => {
    const wallet = await path.wallet(1_000)
    const session = await wallet.meter({ ...TERMS, heartbeat: 4_000, key: 'chat' })
    const silence = Date.now() + 4_000
    const stream = session.stream(new Tokens(3, (n) => (n === 1 ? passes(silence) : undefined)))
    expect(await drain(stream)).toHaveLength(3)
    expect(stream.state).toMatchObject({ charged: 9, endedBy: 'end' })
  })

  it('stops when the session was ended elsewhere', async () => {
    const wallet = await path.wallet(1_000)
    const session = await wallet.meter({ ...TERMS, key: 'chat' })
    const tokens = new Tokens(57, (n) => (n === 5 ? session.end({ total: 2 }) : undefined))
    const stream = session.stream(tokens)
    expect(await refusal(drain(stream))).toMatchObject({ code: 'hold_closed' })
    expect(tokens.stopped).toBe(true)
    expect(stream.state).toMatchObject({ endedBy: 'end' })
  })

  it('stops when the session was ended elsewhere while the source is silent', async () => {
    const wallet = await path.wallet(1_000)
    const session = await wallet.meter({ ...TERMS, heartbeat: 4_000, key: 'chat' })
    const silence = new Tokens(57, (n) => (n === 2 ? new Promise(() => {}) : undefined))
    const stream = session.stream(silence)
    const drained = refusal(drain(stream))
    await until(() => stream.delivered === 2)
    await session.end({ total: 2 })
    expect(await drained).toMatchObject({ code: 'hold_closed' })
    expect(stream.state).toMatchObject({ charged: 6, endedBy: 'end' })
  })

  it('stops when the session has expired', async () => {
    const wallet = await path.wallet(1_000)
    const session = await wallet.meter({ ...TERMS, heartbeat: 200, key: 'chat' })
    const stream = session.stream(new Tokens(57))
    const dawdle = async () => {
      for await (const chunk of stream) if (chunk === 'token 2') await passes(Date.now() + 300)
    }
    expect(await refusal(dawdle())).toMatchObject({ code: 'hold_expired' })
    expect(await session.get()).toMatchObject({ endedBy: 'expiry' })
  })

  it('ends with what was delivered when a chunk has no proper number of units', async () => {
    const wallet = await path.wallet(1_000)
    const session = await wallet.meter({ ...TERMS, key: 'chat' })
    const tokens = new Tokens(57)
    const stream = session.stream(tokens, { units: (chunk) => (chunk === 'token 3' ? 1.5 : 1) })
    const error: HoldfastError = await refusal(drain(stream))
    expect(error.message).toMatch(/^units: expected an integer .* got 1.5$/)
    expect(tokens.stopped).toBe(true)
    expect(await session.get()).toMatchObject({ charged: 6, endedBy: 'end' })
  })

  it('is for sessions by units', async () => {
    const wallet = await path.wallet(1_000)
    const session = await wallet.meter({ by: 'time', rate: 20, per: 60_000, reserve: 60_000, key: 'call' })
    const tokens = new Tokens(1)
    const error = await refusal(drain(session.stream(tokens)))
    expect(error.message).toBe('session: expected one by units, got one by time')
    expect(tokens.made).toBe(0)
    expect(await session.get()).toMatchObject({ ended: false })
  })
})

describe('while Postgres does not answer', () => {
  let proxy: FaultyProxy
  let hf: Holdfast
  let wallets = 0

  beforeAll(async () => {
    const database = await freshDatabase()
    proxy = await startProxy(Number(new URL(database).port))
    const postgres = Object.assign(new URL(database), { port: String(proxy.port) }).href
    hf = await Holdfast.connect({
      redis: await freshRedis(),
      postgres,
      engine: { sweepEveryMs: 600_000, postgresPatienceMs: 60_000 },
    })
  })
  afterAll(async () => {
    await hf.close()
    await proxy.close()
  })

  async function open(): Promise<Wallet> {
    wallets += 1
    const wallet = hf.wallet(`wallet-${wallets}`)
    await wallet.open({ currency: 'usd' })
    await wallet.credit(1_000, { key: 'in' })
    return wallet
  }

  it('goes on as far as it is paid for, and makes the ticks good that got no answer', async () => {
    const wallet = await open()
    const session = await wallet.meter({ ...TERMS, key: 'chat' })
    const tokens = new Tokens(57, (n) => {
      if (n === 3) proxy.hold()
      // All that is reserved is delivered by now: from here on it waits for a tick.
      if (n === 9) setTimeout(() => proxy.behave(), 300)
    })
    expect(await drain(session.stream(tokens, { timeout: 20_000 }))).toHaveLength(57)
    expect(await session.get()).toMatchObject({ charged: 171, endedBy: 'end' })
  })

  it('tells of an end that did not come about, which can be repeated', async () => {
    const wallet = await open()
    const session = await wallet.meter({ ...TERMS, key: 'chat' })
    const stream = session.stream(
      new Tokens(6, (n) => {
        if (n === 5) proxy.hold()
      }),
      { timeout: 2_000, every: 100 },
    )
    expect(await refusal(drain(stream))).toMatchObject({ code: 'timeout' })
    expect(stream).toMatchObject({ delivered: 6, state: { ended: false } })
    proxy.behave()
    expect(await session.end({ total: stream.delivered })).toMatchObject({ charged: 18, endedBy: 'end' })
    expect(await wallet.get()).toMatchObject({ available: 982, reserved: 0 })
  })
})
