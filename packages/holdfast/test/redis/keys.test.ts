import { createHmac } from 'node:crypto'
import { Command } from 'ioredis'
import { describe, expect, it } from 'vitest'
import { Keys, readCode } from '../../src/redis/index.js'

const secret = Buffer.from('0123456789abcdef0123456789abcdef')
const make = (tenant = 'acme', shards = 64) => new Keys({ tenant, secret, shards })
/** As the Cluster client computes it. */
const slotOf = (key: string) => new Command('get', [key]).getSlot()

describe('a ref', () => {
  it('is the first half of an HMAC of tenant and id, but for its last bit, and always the same', () => {
    const half = createHmac('sha256', secret).update('acme\0user_42').digest().subarray(0, 16)
    half[15] = (half[15] as number) & 0xfe
    const expected = half.toString('hex')
    const keys = make()
    expect(keys.ref('user_42')).toBe(expected)
    expect(keys.ref('user_42')).toBe(expected)
    expect(make().ref('user_42')).toBe(expected)
  })

  it('tells sales from wallets by its last bit', () => {
    const keys = make()
    for (let n = 0; n < 50; n += 1) {
      expect(keys.place(keys.ref(`user-${n}`)).isSale).toBe(false)
      expect(keys.ofSale(`sale-${n}`, 0).isSale).toBe(true)
    }
    const { ref, stockKey, walletKey } = keys.ofSale('friday', 1)
    expect(ref).not.toBe(keys.ofSale('friday', 0).ref)
    expect(slotOf(stockKey)).toBe(slotOf(walletKey))
  })

  it('has codes that nobody takes for an option, and knows where each is', () => {
    const keys = make()
    for (let n = 0; n < 200; n += 1) {
      const place = keys.ofSale(`sale-${n}`, 0)
      const code = keys.code(place, keys.buyer(`sale-${n}`, 'ann'), 'key')
      expect(code).toMatch(/^[a-z][\w-]{43}$/)
      expect(readCode(code)).toBe(place.ref)
    }
    expect(readCode('c'.repeat(43))).toBeNull()
  })

  it('differs by tenant, id and secret', () => {
    const refs = [
      make('acme').ref('ab'),
      make('acme').ref('b'),
      make('acmea').ref('b'),
      new Keys({ tenant: 'acme', secret: Buffer.alloc(32), shards: 64 }).ref('ab'),
    ]
    expect(new Set(refs).size).toBe(4)
  })

  it('stays right when more wallets come by than are remembered', () => {
    const keys = make()
    const ids = Array.from({ length: 25_000 }, (_, n) => `wallet ${n}`)
    const first = ids.map((id) => keys.ref(id))
    expect(ids.map((id) => keys.ref(id))).toEqual(first)
    expect(new Set(first).size).toBe(ids.length)
  })

  it('is remembered for the tenants of a database together, and mixed up for none of them', () => {
    const [acme, acmea] = [make('acme'), make('acme').forTenant('acmea')]
    const beside = acme.forTenant('acmea')
    const pairs = [acme.of('ab'), acme.of('b'), beside.of('b'), beside.of('ab'), beside.ofSale('ab', 0)]
    expect(new Set(pairs.map(({ ref }) => ref)).size).toBe(pairs.length)
    expect(beside.of('b')).toEqual(acmea.of('b'))
    expect(acme.forTenant('acmea').of('b')).toBe(beside.of('b'))
    expect(beside).toMatchObject({ tenant: 'acmea', shards: acme.shards, witnesses: acme.witnesses })
    expect(() => acme.forTenant('Acme')).toThrow('tenant: expected 1 to 64 characters')
    for (let n = 0; n < 10_000; n += 1) acme.forTenant(`tenant-${n % 40}`).of(`wallet ${n}`)
    const again = beside.of('b')
    expect(again).not.toBe(pairs[2])
    expect(again).toEqual(pairs[2])
  })
})

describe('keys', () => {
  it('have the pinned form', () => {
    const keys = make('acme', 64)
    const ref = 'ffffffe10123456789abcdef01234567'
    expect(keys.shard(ref)).toBe(0xffffffe1 % 64)
    expect(keys.place(ref).walletKey).toBe(`hf:acme:{33}:wallet:v1:${ref}`)
    expect(keys.place(ref).leaseKey).toBe(`hf:acme:{33}:lease:v1:${ref}`)
    expect(keys.lock('user_42')).toBe(keys.place(keys.ref('user_42')).walletKey.replace(':wallet:', ':lock:'))
    expect(keys.place(ref).agendaKey).toMatch(/^hf:\*:\{33\}:agenda:v1:[0-9a-f]{8}$/)
  })

  it('of one shard lie in one slot of a Cluster, those of different shards in many', () => {
    const keys = make('acme', 64)
    const slots = new Map<number, Set<number>>()
    for (let n = 0; n < 2_000; n += 1) {
      const ref = keys.ref(`wallet ${n}`)
      const shard = keys.shard(ref)
      const seen = slots.get(shard) ?? new Set()
      slots.set(shard, seen)
      const { walletKey, leaseKey, agendaKey } = keys.place(ref)
      for (const key of [walletKey, leaseKey, agendaKey, keys.lock(`wallet ${n}`)]) seen.add(slotOf(key))
    }
    expect(slots.size).toBe(64)
    expect([...slots.values()].every((seen) => seen.size === 1)).toBe(true)
    // Three masters with a third of the slots each: all of them get their share of the shards.
    const masters = [0, 0, 0]
    for (const seen of slots.values()) {
      const third = Math.floor(([...seen][0] as number) / (16_384 / 3))
      masters[third] = (masters[third] as number) + 1
    }
    expect(Math.min(...masters)).toBeGreaterThanOrEqual(10)
  })

  it('of a wallet are spread evenly over the shards', () => {
    const keys = make('acme', 16)
    const counts = new Array<number>(16).fill(0)
    for (let n = 0; n < 16_000; n += 1) {
      const shard = keys.shard(keys.ref(`wallet ${n}`))
      counts[shard] = (counts[shard] as number) + 1
    }
    expect(Math.min(...counts)).toBeGreaterThan(800)
    expect(Math.max(...counts)).toBeLessThan(1_200)
  })

  it('never show the id of a wallet', () => {
    const keys = make()
    for (const id of ['maria.lopez@example.com', '+49 170 1234567', 'a', '日本', '{7}']) {
      const ref = keys.ref(id)
      expect(ref).toMatch(/^[0-9a-f]{32}$/)
      for (const key of [keys.place(ref).walletKey, keys.place(ref).leaseKey, keys.lock(id)]) {
        expect(key).toMatch(/^hf:acme:\{\d+\}:[a-z]+:v1:[0-9a-f]{32}$/)
      }
    }
  })
})

describe('bad input', () => {
  it.each(['', 'Acme', 'a b', 'a:b', 'a{b', 'ü', 'x'.repeat(65)])('tenant %j', (tenant) => {
    expect(() => make(tenant)).toThrow(`tenant: expected 1 to 64 characters of a-z, 0-9, _ and -, got "${tenant}"`)
  })

  it.each([0, -1, 1.5, 16_385, Number.NaN])('%d shards', (shards) => {
    expect(() => make('acme', shards)).toThrow(`shards: expected an integer from 1 to 16384, got ${shards}`)
  })

  it('a secret that is none', () => {
    expect(() => new Keys({ tenant: 'acme', secret: Buffer.from('short'), shards: 1 })).toThrow(
      'secret: expected at least 16 bytes',
    )
  })
})
