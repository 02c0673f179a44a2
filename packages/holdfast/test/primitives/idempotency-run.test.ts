import { setTimeout as sleep } from 'node:timers/promises'
import { Idempotency } from 'holdfast/primitives'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { endLeases } from './support/idempotency.js'
import { type On, TOPOLOGIES } from './support/topologies.js'

describe.each(TOPOLOGIES)('idempotent work on %s', (_, open) => {
  let on: On
  beforeAll(async () => {
    on = await open()
  })
  afterAll(() => on.close())

  it('run: what is thrown lets the next try at once, and is thrown on', async () => {
    const orders = new Idempotency<string>(on.primitives, on.operation())
    const failure = new TypeError('about a person')
    await expect(orders.run('key', {}, () => Promise.reject(failure))).rejects.toBe(failure)
    expect(await orders.peek('key')).toEqual({ result: 'failed', attempt: 1, reason: 'TypeError' })
    const again = await orders.run('key', {}, ({ attempt }) => `attempt ${attempt}`)
    expect(again).toEqual({ result: 'completed', response: 'attempt 2', replayed: false })
    const work = vi.fn(() => 'never')
    expect(await orders.run('key', {}, work)).toEqual({ result: 'completed', response: 'attempt 2', replayed: true })
    expect(work).not.toHaveBeenCalled()
  })

  it('run: the first gets the response as the others do, as JSON brings it back', async () => {
    const orders = new Idempotency(on.primitives, on.operation())
    const work = () => ({ at: new Date(0), nothing: undefined })
    const response = { at: '1970-01-01T00:00:00.000Z' }
    expect(await orders.run('key', {}, work)).toStrictEqual({ result: 'completed', response, replayed: false })
    expect(await orders.run('key', {}, work)).toStrictEqual({ result: 'completed', response, replayed: true })
  })

  it('run: what was done is not done again because its response does not fit', async () => {
    const orders = new Idempotency(on.primitives, on.operation(), { responseMaxBytes: 10 })
    const work = vi.fn(() => 'x'.repeat(100))
    await expect(orders.run('key', {}, work)).rejects.toMatchObject({ code: 'too_large' })
    expect(await orders.run('key', {}, work)).toEqual({ result: 'completed', response: undefined, replayed: true })
    expect(work).toHaveBeenCalledTimes(1)
  })

  it('run: renews the lease while it works', async () => {
    const operation = on.operation()
    const orders = new Idempotency(on.primitives, operation, { leaseMs: 6_000 })
    const result = await orders.run('key', {}, async () => {
      const [key = ''] = await on.keys(operation)
      const begun = await on.redis.get(key)
      await expect.poll(() => on.redis.get(key), { timeout: 20_000 }).not.toBe(begun)
      expect((await orders.tryClaim('key')).result).toBe('processing')
      return 'done'
    })
    expect(result).toMatchObject({ response: 'done' })
  })

  it('run: tells the work when the key is lost, and does not answer with what it did then', async () => {
    const operation = on.operation()
    const orders = new Idempotency<string>(on.primitives, operation, { leaseMs: 1_000 })
    const late = orders.run('key', {}, async ({ signal }) => {
      // More than once, if the lease is renewed in between.
      const takeOver = () => endLeases(on, operation).then(() => orders.tryClaim('key', { token: 'other' }))
      await expect.poll(takeOver).toMatchObject({ result: 'claimed', tookOver: true })
      await vi.waitFor(() => expect(signal.aborted).toBe(true), 20_000)
      expect(signal.reason).toMatchObject({ code: 'claim_lost' })
      return 'of the first'
    })
    await expect(late).rejects.toMatchObject({ code: 'claim_lost', retryable: true })
    expect(await orders.complete('key', 'other', 'of the second')).toBe('completed')
    expect(await orders.run('key', {}, () => 'never')).toMatchObject({ response: 'of the second', replayed: true })
  })

  it("run: tells the work when its caller's own signal fires, and does not begin when it has", async () => {
    const orders = new Idempotency(on.primitives, on.operation())
    const caller = new AbortController()
    const working = orders.run('key', { signal: caller.signal }, async ({ signal }) => {
      caller.abort(new Error('nobody waits'))
      signal.throwIfAborted()
    })
    await expect(working).rejects.toThrow('nobody waits')
    const work = vi.fn()
    await expect(orders.run('key', { signal: caller.signal }, work)).rejects.toMatchObject({ code: 'aborted' })
    expect(work).not.toHaveBeenCalled()
  })

  it("run: does not begin when its caller's signal fires while it claims, and lets the next try at once", async () => {
    const orders = new Idempotency(on.primitives, on.operation())
    const caller = new AbortController()
    const work = vi.fn()
    const asked = orders.run('key', { signal: caller.signal }, work)
    caller.abort()
    await expect(asked).rejects.toMatchObject({ code: 'aborted' })
    expect(work).not.toHaveBeenCalled()
    expect(await orders.peek('key')).toEqual({ result: 'failed', attempt: 1, reason: 'aborted' })
  })

  it('run: a lease for longer than timers can be set is neither lost at once nor renewed all the time', async () => {
    const days = 86_400_000
    const orders = new Idempotency(on.primitives, on.operation(), { leaseMs: 100 * days, retentionMs: 200 * days })
    on.counted('idempotency')
    await orders.run('key', {}, async ({ signal }) => {
      await sleep(50)
      expect(signal.aborted).toBe(false)
    })
    expect(on.counted('idempotency')).toEqual({ claimed: 1, completed: 1 })
  })

  it.each<[string, PropertyDescriptor]>([
    ['can not be read', { get: () => expect.fail('about a person') }],
    ['is no text', { value: Symbol('name') }],
  ])('run: what is thrown is thrown on, and ends the attempt, also when its name %s', async (_, name) => {
    const orders = new Idempotency(on.primitives, on.operation())
    const failure = Object.defineProperty(new Error('mine'), 'name', name)
    const thrown = await orders.run('key', {}, () => Promise.reject(failure)).catch((error) => error)
    expect(Object.is(thrown, failure)).toBe(true)
    expect(await orders.peek('key')).toEqual({ result: 'failed', attempt: 1, reason: 'failed' })
  })
})
