import fc from 'fast-check'
import { Idempotency } from 'holdfast/primitives'
import { describe, expect, it } from 'vitest'
import { canonical } from '../../src/primitives/idempotency/request.js'
import { claimed } from './support/idempotency.js'
import { type On, onSingle } from './support/topologies.js'

describe('what idempotency is asked with', () => {
  it('a request has one form, whatever the order of its members', () => {
    const form = (value: unknown) => canonical('request', value, 0)
    expect(form({ b: 1, a: [true, null, 'x\u2028'], é: -0, z: undefined })).toBe(
      `{"a":[true,null,"x\u2028"],"b":1,"é":0}`,
    )
    expect(form({ at: new Date(0) })).toBe('{"at":"1970-01-01T00:00:00.000Z"}')
    expect(form([undefined, 1e21, 0.1])).toBe('[null,1e+21,0.1]')
    expect(form(new Array(2))).toBe('[null,null]')
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(JSON.parse(form(value))).toEqual(JSON.parse(JSON.stringify(value)))
        const turned = JSON.parse(JSON.stringify(value), (_, member) =>
          member !== null && typeof member === 'object' && !Array.isArray(member)
            ? Object.fromEntries(Object.entries(member).reverse())
            : member,
        )
        expect(form(turned)).toBe(form(value))
      }),
    )
  })

  const circle: { self?: unknown } = {}
  circle.self = circle
  it.each<[string, unknown, string]>([
    ['a bigint', { amount: 1n }, 'request: expected what JSON can hold, got 1'],
    ['no number', { amount: Number.NaN }, 'request: expected finite numbers, got NaN'],
    ['a Date that is none', { at: new Date(Number.NaN) }, 'request: expected valid Dates, got an invalid one'],
    ['a Map', { amounts: new Map() }, 'request: expected plain objects'],
    ['a function', { amount: () => 1 }, 'request: expected what JSON can hold, got a function'],
    ['what refers to itself', circle, 'request: expected at most 64 levels'],
  ])('refuses %s in a request, which JSON would change in silence', async (_, request, message) => {
    await withSingle(async (on) => {
      await expect(new Idempotency(on.primitives, 'refused').tryClaim('key', { request })).rejects.toThrow(message)
      expect(await on.keys('refused')).toEqual([])
    })
  })

  it.each<[string, (on: On) => unknown, string]>([
    [
      'durable without Postgres',
      ({ primitives }) => new Idempotency(primitives, 'refused', { durable: true }),
      'postgres: expected a connection',
    ],
    [
      'to complete in a transaction what is not durable',
      ({ primitives }) => new Idempotency(primitives, 'refused').completeIn({} as never, 'key', 'token', 1),
      'durable: expected true',
    ],
    [
      'to keep it for less than a lease',
      ({ primitives }) => new Idempotency(primitives, 'refused', { retentionMs: 1_000 }),
      'retentionMs: expected an integer from 30000',
    ],
    [
      'a large request',
      ({ primitives }) => new Idempotency(primitives, 'refused').tryClaim('key', { request: 'x'.repeat(1_100_000) }),
      'request: expected at most 1048576 bytes',
    ],
    ['no key', ({ primitives }) => new Idempotency(primitives, 'refused').tryClaim(''), 'key: expected 1 to 1024'],
    [
      'no work',
      ({ primitives }) => new Idempotency(primitives, 'refused').run('key', {}, undefined as never),
      'work: expected a function',
    ],
  ])('refuses %s', async (_, act, message) => {
    await withSingle(async (on) => {
      await expect(async () => act(on)).rejects.toThrow(message)
      expect(await on.keys('refused')).toEqual([])
    })
  })

  it('bytes are compared as bytes, and are not the text that they spell', async () => {
    await withSingle(async ({ primitives }) => {
      const orders = new Idempotency(primitives, 'bytes')
      await claimed(orders, 'key', { request: Buffer.from('"a"') })
      expect((await orders.tryClaim('key', { request: new Uint8Array(Buffer.from('"a"')) })).result).toBe('processing')
      await expect(orders.tryClaim('key', { request: 'a' })).rejects.toMatchObject({ code: 'idempotency_conflict' })
    })
  })
})

async function withSingle(use: (on: On) => Promise<void>): Promise<void> {
  const on = await onSingle()
  try {
    await use(on)
  } finally {
    await on.close()
  }
}
