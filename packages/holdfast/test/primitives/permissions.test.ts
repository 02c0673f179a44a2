import fc from 'fast-check'
import { Permissions, type Primitives } from 'holdfast/primitives'
import { afterAll, beforeAll, describe, expect, expectTypeOf, it } from 'vitest'
import { whileAway } from './support/away.js'
import { losingReplies } from './support/lost-replies.js'
import { type On, onSingle, TOPOLOGIES } from './support/topologies.js'

const first = { version: 1, names: ['read', 'edit', 'print'] } as const
const second = {
  version: 2,
  names: ['share', 'write', 'read'],
  upgrade: { ...first, renamed: { edit: 'write', print: null } },
} as const

describe.each(TOPOLOGIES)('permissions on %s', (_, open) => {
  let on: On
  beforeAll(async () => {
    on = await open()
  })
  afterAll(() => on.close())

  it('missing key: who was granted nothing has nothing, and asking or revoking makes no key', async () => {
    const operation = on.operation()
    const documents = new Permissions(on.primitives, operation, first)
    expect(await documents.list('anna')).toEqual([])
    expect(await documents.has('anna', 'read')).toBe(false)
    expect(await documents.revoke('anna', ['read'])).toMatchObject({ changed: [], names: [] })
    expect(await documents.grant('anna', [])).toMatchObject({ changed: [], names: [] })
    expect(await documents.upgrade('anna')).toBe(false)
    expect(await documents.forget('anna')).toBe(false)
    expect(await on.keys(operation)).toEqual([])
  })

  it('existing key, duplicate: grants and revokes, and says what that has changed', async () => {
    const documents = new Permissions(on.primitives, on.operation(), first)
    on.counted('permissions')
    expect(await documents.grant('anna', ['print', 'read'])).toMatchObject({
      changed: ['read', 'print'],
      names: ['read', 'print'],
    })
    expect(await documents.grant('anna', ['read', 'edit'])).toMatchObject({
      changed: ['edit'],
      names: ['read', 'edit', 'print'],
    })
    expect(await documents.grant('anna', ['read'])).toMatchObject({ changed: [] })
    expect(await documents.revoke('anna', ['read', 'print'])).toMatchObject({
      changed: ['read', 'print'],
      names: ['edit'],
    })
    expect(await documents.has('anna', 'edit')).toBe(true)
    expect(await documents.has('anna', 'read')).toBe(false)
    expect(await documents.list('bert')).toEqual([])
    expect(await documents.forget('anna')).toBe(true)
    expect(await documents.list('anna')).toEqual([])
    expect(on.counted('permissions')).toEqual({ granted: 2, revoked: 1, unchanged: 1, forgotten: 1 })
  })

  it('duplicate: a call that runs twice, because its answer was lost, does what it does once', async () => {
    const documents = new Permissions(losingReplies(on.primitives), on.operation(), first)
    expect((await documents.grant('anna', ['read', 'edit'])).names).toEqual(['read', 'edit'])
    expect((await documents.revoke('anna', ['read'])).names).toEqual(['edit'])
  })

  it('keys: no word of the subject stands in them, and a version has its own', async () => {
    const operation = on.operation()
    await new Permissions(on.primitives, operation, first).grant('anna@example.org', ['read'])
    await new Permissions(on.primitives, operation, { ...first, version: 7 }).grant('anna@example.org', ['read'])
    const [old = '', newer = ''] = await on.keys(operation)
    expect(old).toMatch(new RegExp(`^hf:app:permissions:v1:default:${operation}:\\{[0-9a-f]{32}\\}:v1$`))
    expect(newer).toBe(old.replace(/1$/, '7'))
    expect(await on.redis.pttl(old)).toBe(-1)
  })

  it('wrong state: a layout is never read as another', async () => {
    const operation = on.operation()
    await new Permissions(on.primitives, operation, first).grant('anna', ['read', 'edit'])
    expect(await new Permissions(on.primitives, operation, { ...first, version: 2 }).list('anna')).toEqual([])
    // The same version with other names, in another order, or one more: told, not guessed.
    const mismatch = { code: 'layout_mismatch', operation, redisPattern: 'hf:app:permissions:v1' }
    on.counted('permissions')
    for (const names of [['edit', 'read', 'print'], ['read', 'edit', 'print', 'share'], ['read']]) {
      const other = new Permissions(on.primitives, operation, { version: 1, names })
      await expect(other.list('anna')).rejects.toMatchObject(mismatch)
      await expect(other.grant('anna', ['read'])).rejects.toMatchObject(mismatch)
    }
    expect(on.counted('permissions')).toEqual({ mismatch: 6 })
    expect(await new Permissions(on.primitives, operation, first).list('anna')).toEqual(['read', 'edit'])
  })

  it('wrong state: permissions of the older layout are kept, and moved by the first change', async () => {
    const operation = on.operation()
    const old = new Permissions(on.primitives, operation, first)
    const now = new Permissions(on.primitives, operation, second)
    await old.grant('anna', ['read', 'edit', 'print'])
    await old.grant('bert', ['edit'])
    expect(await now.list('anna')).toEqual(['write', 'read'])
    expect(await now.has('anna', 'write')).toBe(true)
    expect(await old.list('anna')).toEqual(['read', 'edit', 'print'])
    expect(await now.revoke('anna', ['read'])).toMatchObject({ changed: ['read'], names: ['write'] })
    // Whoever still goes by the old layout sees nothing rather than what was revoked.
    expect(await old.list('anna')).toEqual([])
    await old.grant('anna', ['read'])
    expect(await now.list('anna')).toEqual(['write'])
    on.counted('permissions')
    expect([await now.upgrade('bert'), await now.upgrade('bert')]).toEqual([true, false])
    expect(on.counted('permissions')).toEqual({ upgraded: 1 })
    expect(await now.list('bert')).toEqual(['write'])
    expect(await now.forget('anna')).toBe(true)
    expect((await on.keys(operation)).map((key) => key.slice(-2))).toEqual(['v2'])
  })

  it('wrong type, serialization: something else under the key is told and left as it is', async () => {
    const operation = on.operation()
    const documents = new Permissions(on.primitives, operation, first)
    await documents.grant('anna', ['read'])
    const [key = ''] = await on.keys(operation)
    const good = await on.redis.getBuffer(key)
    for (const spoil of [
      () => on.redis.del(key).then(() => on.redis.lpush(key, 'x')),
      () => on.redis.set(key, 'x'),
      () => on.redis.set(key, ''),
      () => on.redis.set(key, Buffer.concat([good as Buffer, Buffer.from('x')])),
    ]) {
      await on.redis.del(key)
      await spoil()
      const before = await on.redis.dump(key)
      on.counted('permissions')
      const damage = { code: 'value_damaged', operation }
      await expect(documents.list('anna')).rejects.toMatchObject(damage)
      await expect(documents.grant('anna', ['edit'])).rejects.toMatchObject(damage)
      await expect(documents.revoke('anna', ['read'])).rejects.toMatchObject(damage)
      expect(on.counted('permissions')).toEqual({ damaged: 3 })
      expect(await on.redis.dump(key)).toBe(before)
    }
    expect(await documents.forget('anna')).toBe(true)
  })

  it('script return type: 256 names, each in a bit of its own', async () => {
    const names = Array.from({ length: 256 }, (_, n) => `p${n}`)
    const many = new Permissions(on.primitives, on.operation(), { version: 1, names })
    expect((await many.grant('anna', names)).names).toEqual(names)
    expect((await many.revoke('anna', ['p0', 'p7', 'p8', 'p255'])).changed).toEqual(['p0', 'p7', 'p8', 'p255'])
    expect(await many.list('anna')).toHaveLength(252)
  })

  it('script return type: whatever a byte of flags looks like, it is no failure', async () => {
    const names = Array.from({ length: 8 }, (_, n) => `p${n}`)
    const flags = new Permissions(on.primitives, on.operation(), { version: 1, names })
    const states = Array.from({ length: 256 }, (_, bits) => names.filter((_, n) => (bits & (128 >> n)) !== 0))
    const answers = await Promise.all(
      states.map(async (state, bits) => {
        await flags.grant(`user-${bits}`, state)
        return flags.grant(`user-${bits}`, [])
      }),
    )
    expect(answers).toEqual(states.map((state) => ({ changed: [], names: state })))
  })

  it('concurrency, metrics: none of many changes at once is lost', async () => {
    const names = Array.from({ length: 100 }, (_, n) => `p${n}`)
    const many = new Permissions(on.primitives, on.operation(), { version: 1, names })
    on.counted('permissions')
    const changes = await Promise.all([...names, ...names].map((name) => many.grant('anna', [name])))
    expect(changes.flatMap(({ changed }) => changed)).toHaveLength(100)
    expect(await many.list('anna')).toEqual(names)
    expect(on.counted('permissions')).toEqual({ granted: 100, unchanged: 100 })
  })

  it('model: any sequence of calls, with the upgrade anywhere, does what a set of names does', async () => {
    const call = fc.record({
      what: fc.constantFrom('grant', 'revoke', 'list', 'upgrade'),
      names: fc.subarray(['share', 'write', 'read'] as const),
    })
    const before = fc.subarray([...first.names])
    await fc.assert(
      fc.asyncProperty(before, fc.array(call, { maxLength: 12 }), async (had, calls) => {
        const operation = on.operation()
        await new Permissions(on.primitives, operation, first).grant('anna', had)
        const now = new Permissions(on.primitives, operation, second)
        const model = new Set<string>(
          had.filter((one) => one !== 'print').map((one) => (one === 'edit' ? 'write' : one)),
        )
        for (const { what, names } of calls) {
          if (what === 'upgrade') await now.upgrade('anna')
          if (what === 'grant') {
            const changed = second.names.filter((one) => names.includes(one) && !model.has(one))
            for (const one of names) model.add(one)
            expect((await now.grant('anna', names)).changed).toEqual(changed)
          }
          if (what === 'revoke') {
            const changed = second.names.filter((one) => names.includes(one) && model.has(one))
            for (const one of names) model.delete(one)
            expect((await now.revoke('anna', names)).changed).toEqual(changed)
          }
          expect(await now.list('anna')).toEqual(second.names.filter((one) => model.has(one)))
        }
      }),
      { numRuns: 25 },
    )
  })
})

describe('permissions', () => {
  it('redis away: refuses, as unavailable', async () => {
    await whileAway(async (primitives) => {
      const documents = new Permissions(primitives, 'documents', first)
      await expect(documents.has('anna', 'read')).rejects.toMatchObject({ code: 'unavailable', retryable: true })
      await expect(documents.grant('anna', ['read'])).rejects.toMatchObject({ code: 'unavailable' })
    })
  })

  it('types know the names', () => {
    expectTypeOf<Parameters<Permissions<'read' | 'write'>['has']>[1]>().toEqualTypeOf<'read' | 'write'>()
    const infer = (primitives: Primitives) => new Permissions(primitives, 'documents', first)
    expectTypeOf(infer).returns.toEqualTypeOf<Permissions<'read' | 'edit' | 'print'>>()
  })

  it.each<[string, (primitives: Primitives) => unknown, string]>([
    ['no version', (p) => new Permissions(p, 'x', { names: ['a'] } as never), 'version: expected an integer from 1'],
    ['no names', (p) => new Permissions(p, 'x', { version: 1, names: [] }), 'names.length: expected an integer from 1'],
    ['one twice', (p) => new Permissions(p, 'x', { version: 1, names: ['a', 'a'] }), 'names: expected each name once'],
    ['a blank', (p) => new Permissions(p, 'x', { version: 1, names: ['a b'] }), 'names: expected 1 to 64'],
    [
      'a name that is not declared',
      (p) => new Permissions(p, 'x', first).grant('anna', ['share' as never]),
      "names: expected 'read' or 'edit' or 'print'",
    ],
    [
      'a name that is missing in the middle',
      (p) => new Permissions(p, 'x', first).grant('anna', new Array(1)),
      "names: expected 'read' or 'edit' or 'print', got nothing",
    ],
    [
      'an upgrade that forgets a name',
      (p) => new Permissions(p, 'x', { ...second, upgrade: { ...first, renamed: { edit: 'write' } } }),
      "upgrade.renamed: expected what 'print' is called now, or null to drop it",
    ],
    [
      'an upgrade of a name that was not there',
      (p) => new Permissions(p, 'x', { ...second, upgrade: { ...second.upgrade, renamed: { delete: null } } }),
      'upgrade.renamed: expected names of the older layout',
    ],
    [
      'an upgrade from a later version',
      (p) => new Permissions(p, 'x', { ...second, upgrade: { ...second.upgrade, version: 2 } }),
      'upgrade.version: expected one below 2',
    ],
  ])('refuses %s', async (_, act, message) => {
    const on = await onSingle()
    await expect(async () => act(on.primitives)).rejects.toThrow(message)
    await on.close()
  })
})
