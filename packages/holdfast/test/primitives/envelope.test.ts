import fc from 'fast-check'
import { type Envelope, Envelopes } from 'holdfast/primitives'
import { afterAll, beforeAll, describe, expect, expectTypeOf, it } from 'vitest'
import { whileAway } from './support/away.js'
import { type On, onSingle, TOPOLOGIES } from './support/topologies.js'

const ttlMs = 60_000
const states = { OPEN: ['PAID', 'CANCELLED'], PAID: [], CANCELLED: [] } as const
type State = keyof typeof states

interface Order {
  readonly orderId: string
  readonly cents: number
}

function order(payload: unknown): Order {
  const { orderId, cents } = payload as Order
  if (typeof orderId !== 'string' || !Number.isSafeInteger(cents)) throw new Error(`no order: ${payload}`)
  return { orderId, cents }
}

const START = Date.parse('2026-07-02T10:00:00.000Z')

describe.each(TOPOLOGIES)('envelopes on %s', (_, open) => {
  let on: On
  let now = START
  beforeAll(async () => {
    on = await open({ now: () => now })
  })
  afterAll(() => on.close())

  const ordersOf = (operation = on.operation()) =>
    new Envelopes(on.primitives, operation, { ttlMs, schemaVersion: 1, schema: order, states })
  const first = { state: 'OPEN' as const, payload: { orderId: 'O-1', cents: 100 } }
  const keyOf = async (operation: string) => (await on.keys(operation))[0] as string

  it('missing key: there is nothing to read, change or delete', async () => {
    const operation = on.operation()
    const orders = ordersOf(operation)
    expect(await orders.get('o')).toBeNull()
    expect(await orders.update('o', () => ({ state: 'PAID' }))).toEqual({ result: 'missing' })
    expect(await orders.ttl('o')).toEqual({ result: 'missing' })
    expect(await orders.unlink('o')).toBe(false)
    expect(await on.keys(operation)).toEqual([])
  })

  it('existing key, duplicate: the second to create gets what the first has made', async () => {
    now = START
    const orders = ordersOf()
    const created = await orders.create('o', first)
    const envelope = { schemaVersion: 1, ...first, createdAt: new Date(START), updatedAt: new Date(START) }
    expect(created).toEqual({ result: 'created', envelope })
    now += 5_000
    expect(await orders.create('o', { ...first, state: 'PAID' })).toEqual({ result: 'exists', envelope })
    const updated = await orders.update('o', ({ payload }) => ({ payload: { ...payload, cents: payload.cents + 1 } }))
    const later = { ...envelope, payload: { orderId: 'O-1', cents: 101 }, updatedAt: new Date(START + 5_000) }
    expect(updated).toEqual({ result: 'updated', envelope: later })
    expect(await orders.get('o')).toEqual(later)
    expect(await orders.update('o', () => null)).toEqual({ result: 'unchanged', envelope: later })
    // What was read, spread, with something else in it.
    expect(await orders.update('o', (read) => ({ ...read, state: read.state }))).toMatchObject({ result: 'updated' })
  })

  it('serialization: stands in Redis as JSON that people can read', async () => {
    now = START
    const operation = on.operation()
    await ordersOf(operation).create('o', first)
    expect(await on.redis.get(await keyOf(operation))).toBe(
      '{"schemaVersion":1,"state":"OPEN","createdAt":"2026-07-02T10:00:00.000Z","updatedAt":"2026-07-02T10:00:00.000Z","payload":{"orderId":"O-1","cents":100}}',
    )
  })

  it('wrong state, metrics: goes only where the machine leads', async () => {
    const orders = ordersOf()
    await orders.create('o', first)
    await orders.update('o', () => ({ state: 'PAID' }))
    on.counted('cell')
    expect(await orders.update('o', () => ({ state: 'CANCELLED' }))).toMatchObject({
      result: 'wrong_state',
      envelope: { state: 'PAID' },
    })
    expect(on.counted('cell')).toEqual({ wrong_state: 1 })
    // To stay is no transition.
    expect(await orders.update('o', () => ({ state: 'PAID', payload: { orderId: 'O-1', cents: 0 } }))).toMatchObject({
      result: 'updated',
    })
  })

  it('ttl present, ttl kept: a change keeps the end, unless it is given another', async () => {
    const orders = ordersOf()
    await orders.create('o', first, { ttlMs: 50_000 })
    await orders.update('o', () => ({}))
    const kept = await orders.ttl('o')
    expect(kept.result === 'ends' && kept.leftMs).toBeLessThanOrEqual(50_000)
    await orders.update('o', () => ({}), { ttlMs: 600_000 })
    const set = await orders.ttl('o')
    expect(set.result === 'ends' && set.leftMs).toBeGreaterThan(500_000)
  })

  it('expired: one that has gone while it was worked on is missing, and is not made anew', async () => {
    const operation = on.operation()
    const orders = ordersOf(operation)
    await orders.create('o', first)
    const read = (await orders.get('o')) as Envelope<Order, State>
    await on.redis.pexpire(await keyOf(operation), 1)
    await expect.poll(() => on.keys(operation)).toEqual([])
    expect(await orders.replace('o', read, { state: 'PAID' })).toEqual({ result: 'missing' })
    expect(await orders.delete('o', read)).toEqual({ result: 'missing' })
  })

  it('concurrency: who has read what is not there any more is told what is', async () => {
    const orders = ordersOf()
    await orders.create('o', first)
    const [mine, yours] = (await Promise.all([orders.get('o'), orders.get('o')])) as Envelope<Order, State>[]
    const won = await orders.replace('o', mine as Envelope<Order, State>, { state: 'PAID' })
    expect(won.result).toBe('updated')
    const lost = await orders.replace('o', yours as Envelope<Order, State>, { state: 'CANCELLED' })
    expect(lost).toMatchObject({ result: 'differs', current: { state: 'PAID' } })
    expect(await orders.delete('o', yours as Envelope<Order, State>)).toMatchObject({ result: 'differs' })
    if (lost.result === 'differs') expect(await orders.delete('o', lost.current)).toEqual({ result: 'deleted' })
  })

  it('concurrency: updates that lose the race are tried again, and none is lost', async () => {
    const orders = ordersOf()
    await orders.create('o', first)
    const addOne = () =>
      orders.update('o', ({ payload }) => ({ payload: { ...payload, cents: payload.cents + 1 } }), { triesMax: 1_000 })
    const results = await Promise.all(Array.from({ length: 30 }, addOne))
    expect(new Set(results.map(({ result }) => result))).toEqual(new Set(['updated']))
    expect((await orders.get('o'))?.payload.cents).toBe(130)
  })

  it('concurrency: gives up after so many tries, and tells what is there', async () => {
    const orders = ordersOf()
    await orders.create('o', first)
    let calls = 0
    const result = await orders.update(
      'o',
      async ({ payload }) => {
        calls += 1
        await orders.update('o', () => ({ payload: { ...payload, orderId: `between ${calls}` } }))
        return { state: 'PAID' }
      },
      { triesMax: 3 },
    )
    expect(result).toMatchObject({ result: 'differs', current: { state: 'OPEN', payload: { orderId: 'between 3' } } })
    expect(calls).toBe(3)
  })

  it('never comes back to what it was, even where the clock stands or goes back', async () => {
    now = START
    const orders = ordersOf()
    await orders.create('o', first)
    const read = (await orders.get('o')) as Envelope<Order, State>
    now = START - 60_000
    await orders.update('o', () => ({ payload: { orderId: 'O-1', cents: 5 } }))
    await orders.update('o', () => ({ payload: first.payload }))
    const current = await orders.get('o')
    expect(current).toEqual({ ...read, updatedAt: new Date(START + 2) })
    expect(await orders.replace('o', read, { state: 'PAID' })).toMatchObject({ result: 'differs' })
    now = START
  })

  it('serialization, wrong type, script return type: what is no envelope is damage, told and left as it is', async () => {
    const operation = on.operation()
    const orders = ordersOf(operation)
    await orders.create('o', first)
    const key = await keyOf(operation)
    const good = JSON.parse((await on.redis.get(key)) as string) as Record<string, unknown>
    const damages: unknown[] = [
      '',
      '{"schemaVersion":1',
      'null',
      '[]',
      '"PAID"',
      { ...good, schemaVersion: '1' },
      { ...good, schemaVersion: 0 },
      { ...good, schemaVersion: 1.5 },
      { ...good, state: 'LOST' },
      { ...good, state: undefined },
      { ...good, createdAt: 'yesterday' },
      { ...good, updatedAt: 1_751_450_400_000 },
      { ...good, payload: undefined },
      { ...good, payload: { orderId: 5 } },
    ]
    for (const damage of damages) {
      const text = typeof damage === 'string' ? damage : JSON.stringify(damage)
      await on.redis.set(key, text)
      on.counted('cell')
      await expect(orders.get('o')).rejects.toMatchObject({ code: 'value_damaged', operation })
      await expect(orders.update('o', () => ({ state: 'PAID' }))).rejects.toMatchObject({ code: 'value_damaged' })
      await expect(orders.create('o', first)).rejects.toMatchObject({ code: 'value_damaged' })
      expect(await on.redis.get(key)).toBe(text)
      expect(on.counted('cell')).toEqual({ damaged: 3, refused: 1 })
    }
    await on.redis.del(key)
    await on.redis.lpush(key, 'x')
    await expect(orders.get('o')).rejects.toMatchObject({ code: 'value_damaged' })
    expect(await orders.unlink('o')).toBe(true)
  })

  it('reads older versions by their upgrades, and writes the newest only with a change', async () => {
    const operation = on.operation()
    const old = new Envelopes(on.primitives, operation, {
      ttlMs,
      schemaVersion: 1,
      schema: (of) => of as { price: string },
    })
    await old.create('o', { state: 'OPEN', payload: { price: '1.50' } })
    const key = await keyOf(operation)
    const before = await on.redis.get(key)
    const orders = new Envelopes(on.primitives, operation, {
      ttlMs,
      schemaVersion: 3,
      schema: order,
      states,
      upgrades: {
        1: ({ price }: { price: string }) => ({ cents: Math.round(Number(price) * 100) }),
        2: (payload: { cents: number }) => ({ ...payload, orderId: 'unknown' }),
      },
    })
    expect(await orders.get('o')).toMatchObject({ schemaVersion: 3, payload: { orderId: 'unknown', cents: 150 } })
    expect(await on.redis.get(key)).toBe(before)
    expect(await orders.update('o', () => ({ state: 'PAID' }))).toMatchObject({ result: 'updated' })
    expect(JSON.parse((await on.redis.get(key)) as string)).toMatchObject({
      schemaVersion: 3,
      payload: { orderId: 'unknown', cents: 150 },
    })
    // And now the one who knows only the first version.
    on.counted('cell')
    await expect(old.get('o')).rejects.toMatchObject({
      code: 'version_unknown',
      schemaVersion: 3,
      message: 'schemaVersion: expected a version from 1 to 1, got 3',
    })
    await expect(old.update('o', () => ({}))).rejects.toMatchObject({ code: 'version_unknown' })
    expect(on.counted('cell')).toEqual({ version_unknown: 2 })
    const young = new Envelopes(on.primitives, operation, {
      ttlMs,
      schemaVersion: 5,
      schema: order,
      upgrades: { 4: (of) => of },
    })
    await expect(young.get('o')).rejects.toThrow('expected a version from 4 to 5, got 3')
  })

  it('an upgrade that fails is damage, and its words stay in the cause', async () => {
    const operation = on.operation()
    const old = new Envelopes(on.primitives, operation, { ttlMs, schemaVersion: 1, schema: (of) => of })
    await old.create('o', { state: 'OPEN', payload: 'secret' })
    const orders = new Envelopes(on.primitives, operation, {
      ttlMs,
      schemaVersion: 2,
      schema: order,
      upgrades: {
        1: (payload) => {
          throw new Error(`what is ${payload}?`)
        },
      },
    })
    const error = await orders.get('o').catch((error: Error) => error)
    expect(error).toMatchObject({ code: 'value_damaged', cause: { message: 'what is secret?' } })
    expect((error as Error).message).not.toContain('secret')
  })

  it('keys: are those of a cell of the same operation', async () => {
    const operation = on.operation()
    await ordersOf(operation).create('O-1', first)
    expect(await on.keys(operation)).toEqual([expect.stringMatching(/^hf:app:cell:v1:default:[^:]+:\{[0-9a-f]{32}\}$/)])
  })

  it('model: any sequence of changes does what an object does', async () => {
    const change = fc.record({
      state: fc.option(fc.constantFrom<State[]>('OPEN', 'PAID', 'CANCELLED'), { nil: undefined }),
      cents: fc.option(fc.maxSafeInteger(), { nil: undefined }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(change, { maxLength: 10 }), async (changes) => {
        const orders = ordersOf()
        await orders.create('o', first)
        let model: { state: State; payload: Order } = first
        for (const { state, cents } of changes) {
          const to = state ?? model.state
          const isAllowed = to === model.state || (states[model.state] as readonly State[]).includes(to)
          const payload = cents === undefined ? model.payload : { ...model.payload, cents }
          if (isAllowed) model = { state: to, payload }
          const changed = { ...(state && { state }), ...(cents !== undefined && { payload }) }
          const answer = await orders.update('o', () => changed)
          expect(answer).toMatchObject({ result: isAllowed ? 'updated' : 'wrong_state', envelope: model })
        }
        expect(await orders.get('o')).toMatchObject(model)
      }),
      { numRuns: 20 },
    )
  })
})

describe('envelopes', () => {
  it('redis away: refuse, as unavailable', async () => {
    await whileAway(async (primitives) => {
      const orders = new Envelopes(primitives, 'order', { ttlMs, schemaVersion: 1, schema: order })
      await expect(orders.get('o')).rejects.toMatchObject({ code: 'unavailable', retryable: true })
      await expect(orders.update('o', () => null)).rejects.toMatchObject({ code: 'unavailable' })
    })
  })

  it('take functions, parsers and standard schemas, and infer payload and state', async () => {
    const on = await onSingle()
    const standard = {
      '~standard': {
        version: 1 as const,
        validate: async (of: unknown) =>
          typeof of === 'string' ? { value: new Date(of) } : { issues: [{ message: 'no date' }] },
      },
    }
    const dates = new Envelopes(on.primitives, 'dates', { ttlMs, schemaVersion: 1, schema: standard, states })
    expectTypeOf(dates.get).returns.resolves.toEqualTypeOf<Envelope<Date, State> | null>()
    const date = new Date('2026-07-02T00:00:00.000Z')
    await dates.create('d', { state: 'OPEN', payload: date })
    expect((await dates.get('d'))?.payload).toEqual(date)
    await expect(dates.update('d', () => ({ payload: 5 as never }))).rejects.toMatchObject({
      code: 'invalid_argument',
      cause: { cause: [{ message: 'no date' }] },
    })
    // Some can be called as well, and return what is wrong.
    const callable = Object.assign(() => ({ problems: 1 }), standard)
    const called = new Envelopes(on.primitives, 'called', { ttlMs, schemaVersion: 1, schema: callable })
    await expect(called.create('d', { state: 'ANY', payload: 5 as never })).rejects.toThrow('expected what the schema')
    const parsed = new Envelopes(on.primitives, 'parsed', { ttlMs, schemaVersion: 1, schema: { parse: order } })
    expectTypeOf(parsed.get).returns.resolves.toEqualTypeOf<Envelope<Order, string> | null>()
    await on.close()
  })

  it('refuse a change that forgot to say what is to be different, and leave what is there', async () => {
    const on = await onSingle()
    const { envelope } = await make(on).create('o', { state: 'OPEN', payload })
    await expect(make(on).update('o', () => undefined as never)).rejects.toThrow('change: expected what is to be')
    expect(await make(on).get('o')).toEqual(envelope)
    await on.close()
  })

  const make = (on: On) =>
    new Envelopes(on.primitives, 'e', { ttlMs, schemaVersion: 1, schema: order, states, maxBytes: 200 })
  const payload = { orderId: 'O', cents: 1 }
  const cycle: { self?: unknown } = {}
  cycle.self = cycle
  it.each<[string, (on: On) => unknown, string]>([
    [
      'a version of none',
      (on) => new Envelopes(on.primitives, 'e', { ttlMs, schemaVersion: 0, schema: order }),
      'schemaVersion: expected an integer',
    ],
    [
      'upgrades with gaps',
      (on) =>
        new Envelopes(on.primitives, 'e', {
          ttlMs,
          schemaVersion: 4,
          schema: order,
          upgrades: { 1: (of) => of, 3: (of) => of },
        }),
      'upgrades: expected one from each',
    ],
    [
      'an upgrade of nothing',
      (on) =>
        new Envelopes(on.primitives, 'e', { ttlMs, schemaVersion: 1, schema: order, upgrades: { 1: (of) => of } }),
      'upgrades: expected one from each',
    ],
    [
      'an upgrade of what is before the first version',
      (on) =>
        new Envelopes(on.primitives, 'e', { ttlMs, schemaVersion: 1, schema: order, upgrades: { 0: (of) => of } }),
      'upgrades: expected one from each',
    ],
    ['no options', (on) => new Envelopes(on.primitives, 'e', undefined as never), 'options: expected an object'],
    [
      'a standard schema that can not validate',
      (on) => new Envelopes(on.primitives, 'e', { ttlMs, schemaVersion: 1, schema: { '~standard': {} } as never }),
      'schema: expected a function to validate with',
    ],
    [
      'no schema',
      (on) => new Envelopes(on.primitives, 'e', { ttlMs, schemaVersion: 1, schema: {} as never }),
      'schema: expected a function',
    ],
    [
      'a state that there is not',
      (on) => make(on).create('o', { state: 'X' as never, payload }),
      'state: expected OPEN or PAID',
    ],
    [
      'a payload that JSON leaves out',
      (on) => make(on).create('o', { state: 'OPEN', payload: undefined as never }),
      'payload: expected what JSON',
    ],
    [
      'a payload that JSON has no end of',
      (on) => make(on).create('o', { state: 'OPEN', payload: cycle as never }),
      'payload: expected what JSON',
    ],
    [
      'a payload that JSON makes another',
      (on) => make(on).create('o', { state: 'OPEN', payload: { orderId: 'O', cents: Number.NaN } }),
      'payload: expected what the schema',
    ],
    [
      'more than allowed',
      (on) => make(on).create('o', { state: 'OPEN', payload: { orderId: 'O'.repeat(200), cents: 1 } }),
      'value: expected at most 200 bytes',
    ],
    [
      'an envelope of somebody else',
      (on) =>
        make(on).replace(
          'o',
          { schemaVersion: 1, state: 'OPEN', createdAt: new Date(), updatedAt: new Date(), payload },
          {},
        ),
      'envelope: expected one as it was read',
    ],
    ['no envelope', (on) => make(on).replace('o', null as never, {}), 'envelope: expected one as it was read'],
    ['no change', (on) => make(on).update('o', 5 as never), 'change: expected a function'],
  ])('refuse %s', async (_, act, message) => {
    const on = await onSingle()
    await expect(async () => act(on)).rejects.toThrow(message)
    expect(await on.keys('e')).toEqual([])
    await on.close()
  })
})
