import fc from 'fast-check'
import { StateCell } from 'holdfast/primitives'
import { afterAll, beforeAll, describe, expect, expectTypeOf, it } from 'vitest'
import { type On, onSingle, TOPOLOGIES } from './support/topologies.js'

const ttlMs = 60_000
const states = {
  NEW: ['PROCESSING'],
  PROCESSING: ['COMPLETED', 'FAILED', 'CANCELLED'],
  FAILED: ['PROCESSING', 'CANCELLED'],
  COMPLETED: [],
  CANCELLED: [],
} as const
type State = keyof typeof states

describe.each(TOPOLOGIES)('a cell with states on %s', (_, open) => {
  let on: On
  beforeAll(async () => {
    on = await open()
  })
  afterAll(() => on.close())

  const cellOf = (operation = on.operation()) => new StateCell(on.primitives, operation, { ttlMs, states })

  it('missing key, existing key, wrong state: goes only where the machine leads', async () => {
    const orders = cellOf()
    expect(await orders.transition('o', 'COMPLETED')).toEqual({ result: 'missing' })
    expect(await orders.get('o')).toBeNull()
    expect(await orders.start('o', 'PROCESSING')).toEqual({ result: 'started' })
    expect(await orders.start('o', 'PROCESSING')).toEqual({ result: 'exists', state: 'PROCESSING' })
    expect(await orders.transition('o', 'FAILED')).toEqual({ result: 'transitioned', from: 'PROCESSING' })
    expect(await orders.transition('o', 'COMPLETED')).toEqual({ result: 'wrong_state', state: 'FAILED' })
    expect(await orders.transition('o', 'PROCESSING')).toEqual({ result: 'transitioned', from: 'FAILED' })
    expect(await orders.transition('o', 'COMPLETED')).toEqual({ result: 'transitioned', from: 'PROCESSING' })
    expect(await orders.transition('o', 'COMPLETED')).toEqual({ result: 'wrong_state', state: 'COMPLETED' })
    expect(await orders.get('o')).toBe('COMPLETED')
    expect(await orders.unlink('o')).toBe(true)
  })

  it('ttl kept, ttl present: a transition leaves the end as it is, unless it is given another', async () => {
    const orders = cellOf()
    await orders.start('o', 'PROCESSING', { ttlMs: 50_000 })
    await orders.transition('o', 'FAILED')
    const kept = await orders.ttl('o')
    expect(kept.result === 'ends' && kept.leftMs).toBeLessThanOrEqual(50_000)
    await orders.transition('o', 'PROCESSING', { ttlMs: 600_000 })
    const set = await orders.ttl('o')
    expect(set.result === 'ends' && set.leftMs).toBeGreaterThan(500_000)
    await orders.transition('o', 'PROCESSING', { ttlMs: 1 })
    expect(await orders.get('o')).toBe('PROCESSING')
  })

  it('wrong type, metrics: a state that the machine does not have is damage, and changed by nobody', async () => {
    const operation = on.operation()
    const orders = cellOf(operation)
    await orders.start('o', 'PROCESSING')
    const [key = ''] = await on.keys(operation)
    for (const value of ['PROCESSING FAILED', 'processing', '', ' ']) {
      await on.redis.set(key, value)
      on.counted('cell')
      // To the one from two states, to the other from none.
      await expect(orders.transition('o', 'CANCELLED')).rejects.toMatchObject({ code: 'value_damaged' })
      await expect(orders.transition('o', 'NEW')).rejects.toMatchObject({ code: 'value_damaged' })
      await expect(orders.get('o')).rejects.toMatchObject({ code: 'value_damaged' })
      expect(await on.redis.get(key)).toBe(value)
      expect(on.counted('cell')).toEqual({ damaged: 3 })
    }
  })

  it('concurrency, metrics: of many who end it one does', async () => {
    const orders = cellOf()
    await orders.start('o', 'PROCESSING')
    on.counted('cell')
    const ends = await Promise.all(
      Array.from({ length: 300 }, (_, n) => orders.transition('o', n % 2 ? 'COMPLETED' : 'FAILED')),
    )
    const ended = ends.filter(({ result }) => result === 'transitioned')
    expect(ended).toEqual([{ result: 'transitioned', from: 'PROCESSING' }])
    expect(on.counted('cell')).toEqual({ transitioned: 1, wrong_state: 299 })
    expect(on.logged.some(({ event }) => event === 'cell_wrong_state')).toBe(true)
  })

  it('model: any walk is what the machine allows', async () => {
    const step = fc.constantFrom<State[]>('NEW', 'PROCESSING', 'FAILED', 'COMPLETED', 'CANCELLED')
    await fc.assert(
      fc.asyncProperty(step, fc.array(step, { maxLength: 15 }), async (first, walk) => {
        const orders = cellOf()
        let at: State = first
        await orders.start('o', first)
        for (const to of walk) {
          const isAllowed = (states[at] as readonly State[]).includes(to)
          expect(await orders.transition('o', to)).toEqual(
            isAllowed ? { result: 'transitioned', from: at } : { result: 'wrong_state', state: at },
          )
          if (isAllowed) at = to
        }
        expect(await orders.get('o')).toBe(at)
      }),
      { numRuns: 25 },
    )
  })
})

describe('a cell with states', () => {
  it('knows its states by their types', async () => {
    const on = await onSingle()
    const orders = new StateCell(on.primitives, 'orders', { ttlMs, states })
    expectTypeOf(orders.get).returns.resolves.toEqualTypeOf<State | null>()
    expectTypeOf(orders.transition).parameter(1).toEqualTypeOf<State>()
    // @ts-expect-error: there is no such state
    await expect(orders.transition('o', 'DONE')).rejects.toThrow('to: expected NEW or PROCESSING or FAILED')
    // @ts-expect-error: it leads to a state that is not listed
    const nowhere = () => new StateCell(on.primitives, 'orders', { ttlMs, states: { A: ['B'] } })
    expect(nowhere).toThrow('states: expected only such as are listed')
    const blank = () => new StateCell(on.primitives, 'orders', { ttlMs, states: { 'A B': [] } })
    expect(blank).toThrow('states: expected names of')
    await on.close()
  })
})
