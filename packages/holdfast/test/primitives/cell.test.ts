import fc from 'fast-check'
import { Cell, KeySampler, type SetOptions } from 'holdfast/primitives'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cellSet, cellSwap } from '../../src/redis/scripts.generated.js'
import { whileAway } from './support/away.js'
import { whileAnswersGetLost } from './support/lost.js'
import { type On, onSingle, TOPOLOGIES } from './support/topologies.js'

const ttlMs = 60_000

describe.each(TOPOLOGIES)('cell on %s', (_, open) => {
  let on: On
  beforeAll(async () => {
    on = await open()
  })
  afterAll(() => on.close())

  const cellOf = (operation = on.operation()) => new Cell(on.primitives, operation, { ttlMs })

  it('missing key: what expects something finds nothing and writes nothing', async () => {
    const operation = on.operation()
    const cell = cellOf(operation)
    expect(await cell.get('user')).toBeNull()
    expect(await cell.ttl('user')).toEqual({ result: 'missing' })
    expect(await cell.set('user', 'x', { when: 'there' })).toEqual({ result: 'refused', current: null })
    expect(await cell.compareAndSet('user', 'x', 'y')).toEqual({ result: 'missing' })
    expect(await cell.compareAndDelete('user', 'x')).toEqual({ result: 'missing' })
    expect(await cell.unlink('user')).toBe(false)
    expect(await on.keys(operation)).toEqual([])
    expect(await cell.set('user', 'x', { previous: true })).toEqual({ result: 'written', previous: null })
    expect(await cell.get('user')).toBe('x')
  })

  it('existing key, duplicate: what expects nothing is refused with what is there', async () => {
    const cell = cellOf()
    expect(await cell.set('user', 'first', { when: 'missing' })).toEqual({ result: 'written' })
    // Also who asks again because the answer was lost: it is for the caller to see that it is its own.
    expect(await cell.set('user', 'first', { when: 'missing' })).toEqual({ result: 'refused', current: 'first' })
    expect(await cell.set('user', 'second', { when: 'missing' })).toEqual({ result: 'refused', current: 'first' })
    expect(await cell.set('user', 'third', { when: 'there' })).toEqual({ result: 'written' })
    expect(await cell.set('user', 'fourth', { previous: true })).toEqual({ result: 'written', previous: 'third' })
    expect(await cell.compareAndSet('user', 'fourth', 'fifth')).toEqual({ result: 'swapped' })
    expect(await cell.compareAndSet('user', 'fourth', 'fifth')).toEqual({ result: 'differs', current: 'fifth' })
    expect(await cell.compareAndDelete('user', 'fifth')).toEqual({ result: 'deleted' })
    expect(await cell.compareAndDelete('user', 'fifth')).toEqual({ result: 'missing' })
  })

  it('wrong state: another value than was expected is told, and stays', async () => {
    const cell = cellOf()
    await cell.set('user', 'PROCESSING')
    expect(await cell.compareAndSet('user', 'processing', 'COMPLETED')).toEqual({
      result: 'differs',
      current: 'PROCESSING',
    })
    expect(await cell.compareAndDelete('user', 'COMPLETED')).toEqual({ result: 'differs', current: 'PROCESSING' })
    expect(await cell.get('user')).toBe('PROCESSING')
    expect(on.logged.find(({ event }) => event === 'cell_differs')?.facts).toEqual({
      tenantId: 'default',
      operation: expect.any(String),
      keyHashPrefix: expect.stringMatching(/^hmac_[0-9a-f]{8}$/),
      redisPattern: 'hf:app:cell:v1',
    })
  })

  it('ttl present, ttl kept: every form of writing says what becomes of the end', async () => {
    const operation = on.operation()
    const cell = cellOf(operation)
    const leftMs = async () => {
      const left = await cell.ttl('user')
      return left.result === 'ends' ? Math.ceil(left.leftMs / 20_000) * 20_000 : left.result
    }
    // Nothing is there whose end could be kept: KEEPTTL alone would make a key that stays for ever.
    await cell.set('user', 'a', { ttlMs: 'keep' })
    expect(await leftMs()).toBe(60_000)
    await cell.set('user', 'b', { ttlMs: 500_000 })
    expect(await leftMs()).toBe(500_000)
    await cell.set('user', 'c', { ttlMs: 'keep' })
    expect(await leftMs()).toBe(500_000)
    await cell.set('user', 'c', { ttlMs: 'keep', when: 'there' })
    await cell.compareAndSet('user', 'c', 'd')
    expect(await leftMs()).toBe(500_000)
    await cell.compareAndSet('user', 'd', 'e', { ttlMs: 200_000 })
    expect(await leftMs()).toBe(200_000)
    await cell.set('user', 'f')
    expect(await leftMs()).toBe(60_000)
    // What is refused changes nothing of the end either.
    await cell.set('user', 'g', { when: 'missing', ttlMs: 900_000 })
    await cell.compareAndSet('user', 'g', 'h', { ttlMs: 900_000 })
    expect(await leftMs()).toBe(60_000)
    expect(await cell.get('user')).toBe('f')
  })

  it('has cells that stay on purpose, under a name of their own', async () => {
    const operation = on.operation()
    const cell = new Cell(on.primitives, operation, { ttlMs: 'none' })
    await cell.set('user', 'a')
    expect(await cell.ttl('user')).toEqual({ result: 'no_end' })
    await cell.set('user', 'b', { ttlMs: 50_000 })
    expect(await cell.ttl('user')).toMatchObject({ result: 'ends' })
    await cell.set('user', 'c')
    expect(await cell.ttl('user')).toEqual({ result: 'no_end' })
    expect(await on.keys(operation)).toEqual([expect.stringMatching(/^hf:app:cell-lasting:v1:/)])
    expect(await cellOf(operation).get('user')).toBeNull()
  })

  it('metrics: an end is missed only where there should be one', async () => {
    const owner = `cells-${process.pid}-${Date.now()}`
    const mine = await open({ owner })
    const ending = new Cell(mine.primitives, 'ending', { ttlMs })
    await ending.set('a', 'x')
    await ending.set('b', 'x')
    await new Cell(mine.primitives, 'staying', { ttlMs: 'none' }).set('a', 'x')
    const [key = ''] = await mine.keys('ending')
    await mine.redis.persist(key)
    const sampler = new KeySampler(mine.primitives, { owner })
    const sample = { keys: { cell: 2, 'cell-lasting': 1 }, ttlMissing: { cell: 1 } }
    // It may take many steps: the Cluster has keys of others too.
    await expect.poll(() => sampler.step(), { timeout: 20_000, interval: 1 }).toEqual(sample)
    await mine.close()
  })

  it('expired: what has gone by itself is missing', async () => {
    const operation = on.operation()
    const cell = cellOf(operation)
    await cell.set('user', 'x', { ttlMs: 1 })
    await expect.poll(() => on.keys(operation)).toEqual([])
    expect(await cell.compareAndSet('user', 'x', 'y')).toEqual({ result: 'missing' })
    expect(await cell.set('user', 'z', { when: 'missing' })).toEqual({ result: 'written' })
  })

  it('serialization: text and bytes come back as they went', async () => {
    const text = cellOf()
    for (const value of ['', '\0', '\uFEFFbom', 'ä€🦊', '{"a":1}', '9007199254740993', ' \r\n']) {
      await text.set('user', value)
      expect(await text.get('user')).toBe(value)
      expect(await text.compareAndSet('user', value, value)).toEqual({ result: 'swapped' })
    }
    const bytes = new Cell(on.primitives, on.operation(), { ttlMs, values: 'bytes' })
    const all = Uint8Array.from({ length: 256 }, (_, byte) => byte)
    await bytes.set('user', all)
    const read = await bytes.get('user')
    expect(Buffer.from(read as Uint8Array).equals(all)).toBe(true)
    expect(await bytes.compareAndSet('user', all, new Uint8Array([0xff, 0, 0xfe]))).toEqual({ result: 'swapped' })
    expect(await bytes.compareAndSet('user', all, all)).toMatchObject({
      result: 'differs',
      current: Buffer.from([0xff, 0, 0xfe]),
    })
  })

  it('sends the bytes of the moment of the call, whatever the caller does with them afterwards', async () => {
    const cell = new Cell(on.primitives, on.operation(), { ttlMs, values: 'bytes' })
    const bytes = new Uint8Array([1, 2, 3])
    const written = cell.set('user', bytes)
    bytes.fill(9)
    await written
    expect([...((await cell.get('user')) as Uint8Array)]).toEqual([1, 2, 3])
  })

  it('wrong type: something else under the key is told and left as it is', async () => {
    const operation = on.operation()
    const cell = cellOf(operation)
    await cell.set('user', 'x')
    const [key = ''] = await on.keys(operation)
    await on.redis.del(key)
    await on.redis.lpush(key, 'x')
    const before = await on.redis.dump(key)
    const calls: (() => Promise<unknown>)[] = [
      () => cell.get('user'),
      () => cell.set('user', 'y'),
      () => cell.set('user', 'y', { when: 'missing' }),
      () => cell.set('user', 'y', { when: 'there', ttlMs: 'keep' }),
      () => cell.compareAndSet('user', 'x', 'y'),
      () => cell.compareAndDelete('user', 'x'),
    ]
    for (const call of calls) {
      await expect(call()).rejects.toMatchObject({ code: 'value_damaged', operation, redisPattern: 'hf:app:cell:v1' })
    }
    expect(await on.redis.dump(key)).toBe(before)
    expect(await cell.unlink('user')).toBe(true)
  })

  it('serialization, metrics: bytes that are no text are told, and counted', async () => {
    const operation = on.operation()
    const cell = cellOf(operation)
    await cell.set('user', 'x')
    const [key = ''] = await on.keys(operation)
    await on.redis.set(key, Buffer.from([0xc3, 0x28]))
    on.counted('cell')
    await expect(cell.get('user')).rejects.toMatchObject({ code: 'value_damaged' })
    await expect(cell.set('user', 'y', { when: 'missing' })).rejects.toMatchObject({ code: 'value_damaged' })
    await expect(cell.compareAndSet('user', 'x', 'y')).rejects.toMatchObject({ code: 'value_damaged' })
    // Here it is too late to say that nothing was changed.
    await expect(cell.set('user', 'y', { previous: true })).rejects.toMatchObject({
      code: 'value_damaged',
      written: true,
    })
    expect(await cell.get('user')).toBe('y')
    expect(on.counted('cell')).toEqual({ damaged: 4, refused: 1, differs: 1, written: 1 })
  })

  it('script return type, metrics: each result is counted by its word', async () => {
    const cell = cellOf()
    on.counted('cell')
    await cell.set('user', '')
    // An empty value is there: it is not taken for a missing one.
    expect(await cell.get('user')).toBe('')
    expect(await cell.set('user', 'x', { previous: true })).toEqual({ result: 'written', previous: '' })
    await cell.set('user', 'x', { when: 'missing' })
    await cell.compareAndSet('user', 'x', '')
    expect(await cell.compareAndSet('user', 'x', 'y')).toEqual({ result: 'differs', current: '' })
    await cell.compareAndDelete('user', '')
    await cell.compareAndDelete('user', '')
    expect(on.counted('cell')).toEqual({ written: 2, refused: 1, swapped: 1, differs: 1, deleted: 1, missing: 1 })
  })

  it('concurrency: of many who expect the same one gets it', async () => {
    const cell = cellOf()
    const created = await Promise.all(
      Array.from({ length: 300 }, (_, n) => cell.set('user', `${n}`, { when: 'missing' })),
    )
    expect(created.filter(({ result }) => result === 'written')).toHaveLength(1)
    const won = await cell.get('user')
    expect(created.filter((one) => one.result === 'refused' && one.current === won)).toHaveLength(299)

    const swapped = await Promise.all(
      Array.from({ length: 300 }, (_, n) => cell.compareAndSet('user', won as string, `next ${n}`)),
    )
    expect(swapped.filter(({ result }) => result === 'swapped')).toHaveLength(1)
    const deleted = await Promise.all(
      Array.from({ length: 50 }, async () => cell.compareAndDelete('user', (await cell.get('user')) ?? '')),
    )
    expect(deleted.filter(({ result }) => result === 'deleted')).toHaveLength(1)
  })

  it('concurrency: a count by compare-and-set loses nothing', async () => {
    const cell = cellOf()
    await cell.set('count', '0')
    const addOne = async (): Promise<void> => {
      for (let current = '0'; ; ) {
        const answer = await cell.compareAndSet('count', current, `${Number(current) + 1}`)
        if (answer.result === 'swapped') return
        if (answer.result === 'missing') throw new Error('gone')
        current = answer.current
      }
    }
    await Promise.all(Array.from({ length: 40 }, addOne))
    expect(await cell.get('count')).toBe('40')
  })

  it('keys: no word of the scope stands in them, and a tenant has its own', async () => {
    const operation = on.operation()
    await cellOf(operation).set(['+4912345', 'cart'], 'x')
    await new Cell(on.primitives.forTenant('acme'), operation, { ttlMs }).set(['+4912345', 'cart'], 'x')
    const keys = await on.keys(operation)
    expect(keys).toHaveLength(2)
    expect(keys[0]).toMatch(new RegExp(`^hf:app:cell:v1:acme:${operation}:\\{[0-9a-f]{32}\\}$`))
    expect(keys[1]).toMatch(new RegExp(`^hf:app:cell:v1:default:${operation}:\\{[0-9a-f]{32}\\}$`))
  })

  it('model: any sequence of calls does what a map of texts does', async () => {
    const values = fc.constantFrom('', 'a', 'b', 'ä')
    const call = fc.record({
      what: fc.constantFrom('set', 'set', 'swap', 'drop', 'get', 'unlink'),
      scope: fc.constantFrom('a', 'b'),
      expected: values,
      value: values,
      when: fc.constantFrom<SetOptions['when'][]>('always', 'missing', 'there'),
      end: fc.constantFrom<SetOptions['ttlMs'][]>(undefined, 'keep', 500_000),
    })
    const held = (model: Map<string, { value: string; ends: number }>, scope: string) => model.get(scope)?.value ?? null
    await fc.assert(
      fc.asyncProperty(fc.array(call, { maxLength: 25 }), async (calls) => {
        const cell = cellOf()
        const model = new Map<string, { value: string; ends: number }>()
        for (const { what, scope, expected, value, when = 'always', end } of calls) {
          const before = held(model, scope)
          const kept = model.get(scope)?.ends ?? ttlMs
          const options = { ...(end !== undefined && { ttlMs: end }) }
          if (what === 'get') expect(await cell.get(scope)).toBe(before)
          else if (what === 'unlink') expect(await cell.unlink(scope)).toBe(model.delete(scope))
          else if (what === 'set') {
            const isWritten = when === 'always' || (when === 'missing') === (before === null)
            if (isWritten) model.set(scope, { value, ends: end === 'keep' ? kept : (end ?? ttlMs) })
            expect(await cell.set(scope, value, { ...options, when, previous: true })).toEqual(
              isWritten ? { result: 'written', previous: before } : { result: 'refused', current: before },
            )
          } else {
            const isSame = before === expected
            const done = what === 'swap' ? 'swapped' : 'deleted'
            if (isSame && what === 'swap') model.set(scope, { value, ends: end === 500_000 ? end : kept })
            if (isSame && what === 'drop') model.delete(scope)
            const answer =
              what === 'swap'
                ? await cell.compareAndSet(scope, expected, value, options)
                : await cell.compareAndDelete(scope, expected)
            const otherwise = before === null ? { result: 'missing' } : { result: 'differs', current: before }
            expect(answer).toEqual(isSame ? { result: done } : otherwise)
          }
          const left = await cell.ttl(scope)
          const ends = model.get(scope)?.ends
          expect(left.result === 'ends' ? Math.ceil(left.leftMs / 20_000) * 20_000 : undefined).toBe(ends)
        }
      }),
      { numRuns: 25 },
    )
  })
})

describe('cell', () => {
  it('duplicate: a change whose answer was lost is done once, told as unknown, and not sent again', async () => {
    await whileAnswersGetLost(async (primitives, lose) => {
      const cell = new Cell(primitives, 'state', { ttlMs })
      await cell.set('user', 'a')
      await cell.compareAndSet('user', 'a', 'b')
      const unknown = { code: 'unavailable', outcome: 'unknown', retryable: true }
      const [lost] = await Promise.allSettled([cell.compareAndSet('user', 'b', 'c'), lose(cellSwap)])
      expect(lost).toMatchObject({ status: 'rejected', reason: unknown })
      // Who reads, or asks again, finds its own value.
      expect(await cell.compareAndSet('user', 'b', 'c')).toEqual({ result: 'differs', current: 'c' })
      const [set] = await Promise.allSettled([cell.set('user', 'd'), lose(cellSet)])
      expect(set).toMatchObject({ status: 'rejected', reason: unknown })
      expect(await cell.get('user')).toBe('d')
    })
  })

  it('redis away: refuses, as unavailable', async () => {
    await whileAway(async (primitives) => {
      const cell = new Cell(primitives, 'state', { ttlMs })
      await expect(cell.get('user')).rejects.toMatchObject({ code: 'unavailable', retryable: true })
      await expect(cell.set('user', 'x')).rejects.toMatchObject({ code: 'unavailable' })
      const [one] = await cell.setMany([['user', 'x']])
      expect(one).toMatchObject({ result: 'failed', error: { code: 'unavailable' } })
    })
  })

  it.each<[string, (on: On) => unknown, string]>([
    ['no word about the end', ({ primitives }) => new Cell(primitives, 'c', {} as never), 'ttlMs: expected millis'],
    ['no time at all', ({ primitives }) => new Cell(primitives, 'c', { ttlMs: 0 }), 'ttlMs: expected an integer'],
    [
      'a kind of values that is none',
      ({ primitives }) => new Cell(primitives, 'c', { ttlMs, values: 'json' as never }),
      "values: expected 'text' or 'bytes'",
    ],
    [
      'one key without an end',
      (on) => cellOn(on).set('u', 'x', { ttlMs: 'none' as never }),
      "ttlMs: expected milliseconds or 'keep'",
    ],
    ['half a character', (on) => cellOn(on).set('u', '\ud800'), 'value: expected well-formed Unicode'],
    ['a number for a text', (on) => cellOn(on).set('u', 5 as never), 'value: expected a string, got a number'],
    [
      'a text for bytes',
      ({ primitives }) => new Cell(primitives, 'c', { ttlMs, values: 'bytes' }).set('u', 'x' as never),
      'value: expected bytes',
    ],
    [
      'a condition that is none',
      (on) => cellOn(on).set('u', 'x', { when: 'never' as never }),
      "when: expected 'always'",
    ],
    ['more bytes than allowed', (on) => cellOn(on).set('u', 'ä'.repeat(6)), 'value: expected at most 10 bytes, got 12'],
    [
      'more bytes than could be there',
      (on) => cellOn(on).compareAndSet('u', 'x'.repeat(11), ''),
      'expected: expected at most 10',
    ],
    ['an empty scope', (on) => cellOn(on).get(''), 'scope: expected 1 to 1024'],
  ])('refuses %s', async (_, act, message) => {
    const on = await onSingle()
    await expect(async () => act(on)).rejects.toThrow(message)
    expect(await on.keys('c')).toEqual([])
    await on.close()
  })
})

const cellOn = ({ primitives }: On) => new Cell(primitives, 'c', { ttlMs, maxBytes: 10 })
