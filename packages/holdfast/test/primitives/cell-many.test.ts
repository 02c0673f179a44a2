import { Cell } from 'holdfast/primitives'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { KeySpace } from '../../src/primitives/keys.js'
import type { Labels } from '../../src/telemetry/index.js'
import { type On, onCluster, TOPOLOGIES } from './support/topologies.js'

const ttlMs = 60_000

describe.each(TOPOLOGIES)('cells in batches on %s', (name, open) => {
  let on: On
  let sent: Record<string, number> = {}
  beforeAll(async () => {
    on = await open({
      telemetry: {
        observe(_, __, { command = '' }: Labels = {}) {
          sent[command] = (sent[command] ?? 0) + 1
        },
      },
    })
  })
  afterAll(() => on.close())

  const users = (count: number) => Array.from({ length: count }, (_, n) => `user-${n}`)

  it('missing key, existing key: answers are in the order of what was asked for', async () => {
    const cell = new Cell(on.primitives, on.operation(), { ttlMs })
    const written = await cell.setMany(users(200).map((user, n) => [user, `${n}`]))
    expect(written).toEqual(users(200).map(() => ({ result: 'written' })))
    const asked = [...users(200), 'nobody'].reverse()
    const read = await cell.getMany(asked)
    expect(read).toEqual(
      asked.map((user) =>
        user === 'nobody' ? { result: 'missing' } : { result: 'found', value: user.slice('user-'.length) },
      ),
    )
    expect(await cell.ttl('user-199')).toMatchObject({ result: 'ends' })
    expect(await cell.getMany([])).toEqual([])
  })

  it('wrong state, wrong type: what is refused or fails for one does not cost the others', async () => {
    const operation = on.operation()
    const cell = new Cell(on.primitives, operation, { ttlMs })
    await cell.set('spoilt', 'x')
    const [key = ''] = await on.keys(operation)
    await on.redis.del(key)
    await on.redis.lpush(key, 'x')
    await cell.set('taken', 'mine')
    const entries = ['free', 'taken', 'spoilt', 'other'].map((of) => [of, 'new'] as const)
    expect(await cell.setMany(entries, { when: 'missing' })).toEqual([
      { result: 'written' },
      { result: 'refused', current: 'mine' },
      { result: 'failed', error: expect.objectContaining({ code: 'value_damaged' }) },
      { result: 'written' },
    ])
    expect(await cell.getMany(['spoilt', 'taken'])).toEqual([
      { result: 'failed', error: expect.objectContaining({ code: 'value_damaged' }) },
      { result: 'found', value: 'mine' },
    ])
  })

  it('concurrency: scopes of one slot are one call, and no more than a few calls are under way', async () => {
    const operation = on.operation()
    const cells = [1, 2, 3].map(() => new Cell(on.primitives, operation, { ttlMs, manyMax: 1_024 }))
    const space = new KeySpace(on.primitives.context, 'cell', operation)
    const asked = users(1_000)
    // Two of a thousand share one of 16,384 slots almost surely.
    const slots = new Set(asked.map((user) => space.scope(user).slot)).size
    expect(slots).toBeLessThan(asked.length)
    await cells[0]?.getMany(asked)
    sent = {}
    // Three at once would be more calls than a connection lets through at a time, if each did not wait for itself.
    const read = await Promise.all(cells.map((cell) => cell.getMany(asked)))
    expect(read.flat()).toEqual(Array.from({ length: 3_000 }, () => ({ result: 'missing' })))
    expect(sent.cell_get).toBeLessThanOrEqual(3 * (name === 'a Cluster' ? slots : Math.ceil(asked.length / 32)))
  })

  it('sends fewer together where values may be large', async () => {
    const cell = new Cell(on.primitives, on.operation(), {
      ttlMs,
      maxBytes: 1_024 * 1_024,
      manyMaxBytes: 64 * 1_024 * 1_024,
    })
    const large = 'x'.repeat(1_024 * 1_024)
    sent = {}
    // All of one slot, which could be one call.
    const written = await Promise.all(Array.from({ length: 6 }, () => cell.set('user', large)))
    expect(written).toEqual(written.map(() => ({ result: 'written' })))
    expect(sent.cell_set).toBeGreaterThanOrEqual(3)
    expect(await cell.get('user')).toBe(large)
  })

  it('refuses more than the caps before anything is sent, and stops reading where there is more', async () => {
    const cell = new Cell(on.primitives, on.operation(), { ttlMs, manyMax: 100, manyMaxBytes: 1_000 })
    await cell.set('user-0', 'before')
    sent = {}
    await expect(cell.getMany(users(101))).rejects.toMatchObject({ code: 'too_large', max: 100 })
    await expect(cell.setMany(users(101).map((user) => [user, '']))).rejects.toMatchObject({ code: 'too_large' })
    await expect(cell.setMany(users(11).map((user) => [user, 'x'.repeat(100)]))).rejects.toMatchObject({
      code: 'too_large',
      message: 'values: expected at most 1000 bytes together, got 1100',
    })
    await expect(
      cell.setMany([
        ['a', 'x'],
        ['a', 'y'],
      ]),
    ).rejects.toMatchObject({ code: 'invalid_argument' })
    await expect(
      cell.setMany([
        ['a', 'x'],
        ['', 'y'],
      ]),
    ).rejects.toMatchObject({ code: 'invalid_argument' })
    await expect(cell.setMany(['a'] as never)).rejects.toMatchObject({ code: 'invalid_argument' })
    expect(sent).toEqual({})
    await Promise.all(users(100).map((user) => cell.set(user, 'x'.repeat(100))))
    await expect(cell.getMany(users(100))).rejects.toMatchObject({ code: 'too_large', max: 1_000 })
    expect(await cell.getMany(users(10))).toHaveLength(10)
  })
})

describe('the slot of a scope', () => {
  it('is the one in which the Cluster puts its keys', async () => {
    const on = await onCluster()
    const space = new KeySpace(on.primitives.context, 'cell', 'slots')
    for (let n = 0; n < 50; n += 1) {
      const scope = space.scope(`user-${n}`)
      expect(scope.slot).toBe(await on.redis.cluster('KEYSLOT', scope.base))
    }
    await on.close()
  })
})
