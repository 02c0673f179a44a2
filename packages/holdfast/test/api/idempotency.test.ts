import { Redis } from 'ioredis'
import { describe, expect, it } from 'vitest'
import type { Wallet } from '../../src/index.js'
import { onBothPaths, type Path, refusal } from './support/paths.js'

const HOUR = 3_600_000

interface Operation {
  readonly name: string
  /** Prepares a wallet with 100 in it and an open hold `h` of 50, and gives the call. */
  readonly call: (wallet: Wallet, key: string) => Promise<unknown>
  /** The same key, and something else that decides. */
  readonly others: ((wallet: Wallet, key: string) => Promise<unknown>)[]
}

const OPERATIONS: Operation[] = [
  {
    name: 'credit',
    call: (wallet, key) => wallet.credit(5, { key }),
    others: [
      (wallet, key) => wallet.credit(6, { key }),
      (wallet, key) => wallet.debit(5, { key }),
      // There is nothing to refund either.
      (wallet, key) => wallet.refund(999, 5, { key }),
    ],
  },
  {
    name: 'debit',
    call: (wallet, key) => wallet.debit(5, { key }),
    others: [(wallet, key) => wallet.debit(6, { key })],
  },
  {
    name: 'hold',
    call: async (wallet, key) => (await wallet.hold(5, { key, ttl: HOUR })).receipt,
    others: [
      (wallet, key) => wallet.hold(6, { key, ttl: HOUR }),
      (wallet, key) => wallet.hold(5, { key, ttl: HOUR + 1 }),
    ],
  },
  {
    name: 'capture',
    call: (wallet, key) => wallet.holdRef('h').capture(5, { key }),
    others: [
      (wallet, key) => wallet.holdRef('h').capture(6, { key }),
      (wallet, key) => wallet.holdRef('other').capture(5, { key }),
      (wallet, key) => wallet.holdRef('h').capture(5, { key, beyond: 'available' }),
    ],
  },
  {
    name: 'extend',
    call: (wallet, key) => wallet.holdRef('h').extend({ amount: 5, ttl: HOUR, key }),
    others: [
      (wallet, key) => wallet.holdRef('h').extend({ amount: 5, key }),
      (wallet, key) => wallet.holdRef('h').extend({ ttl: HOUR, key }),
    ],
  },
  {
    name: 'settle',
    call: (wallet, key) => wallet.holdRef('h').settle(20, { key }),
    others: [
      (wallet, key) => wallet.holdRef('h').settle(21, { key }),
      (wallet, key) => wallet.holdRef('h').release({ key }),
    ],
  },
  {
    name: 'release',
    call: (wallet, key) => wallet.holdRef('h').release({ key }),
    others: [(wallet, key) => wallet.holdRef('other').release({ key })],
  },
  {
    name: 'refund',
    call: (wallet, key) => wallet.refund(3, 2, { key }),
    others: [(wallet, key) => wallet.refund(3, 3, { key }), (wallet, key) => wallet.refund(4, 2, { key })],
  },
  {
    name: 'freeze',
    call: (wallet, key) => wallet.freeze({ key }),
    others: [(wallet, key) => wallet.unfreeze({ key })],
  },
  {
    name: 'unfreeze',
    call: (wallet, key) => wallet.unfreeze({ key }),
    others: [(wallet, key) => wallet.freeze({ key })],
  },
  {
    name: 'setCreditLimit',
    call: (wallet, key) => wallet.setCreditLimit(9, { key }),
    others: [(wallet, key) => wallet.setCreditLimit(8, { key })],
  },
]

/** seq 1 to 5: credit, hold h, debit, capture of h, hold other. */
async function prepared(path: Path): Promise<Wallet> {
  const wallet = await path.wallet(100)
  await wallet.hold(50, { key: 'h', ttl: HOUR })
  await wallet.debit(10, { key: 'd' })
  await wallet.holdRef('h').capture(10, { key: 'c' })
  await wallet.hold(10, { key: 'other', ttl: HOUR })
  return wallet
}

/** Redis has forgotten the results: by many operations since, or altogether. */
const FORGETTING: Record<string, (path: Path, wallet: Wallet) => Promise<void>> = {
  'at once': async () => {},
  'after a hundred others': async (_, wallet) => {
    await Promise.all(Array.from({ length: 110 }, (_, i) => wallet.credit(1, { key: `later ${i}` })))
  },
  'after Redis was flushed': async (path) => {
    if (path.name === 'Postgres') return
    const redis = new Redis(path.redisUrl)
    await redis.flushdb()
    redis.disconnect()
  },
}

describe.each(Object.keys(FORGETTING))('a key that is used again %s', (when) => {
  onBothPaths((path) => {
    it.each(OPERATIONS)('repeats the first answer of $name and refuses anything else', async ({ call, others }) => {
      const wallet = await prepared(path)
      const first = await call(wallet, 'again')
      await FORGETTING[when]?.(path, wallet)
      const before = await wallet.get()
      expect(first).toMatchObject({ replayed: false })
      for (const other of others) {
        expect(await refusal(other(wallet, 'again'))).toMatchObject({ code: 'idempotency_conflict', status: 422 })
      }
      const again = await call(wallet, 'again')
      expect(again).toEqual({ ...(first as object), replayed: true })
      // Looking an old key up may cost the wallet an epoch, but nothing else.
      expect(await wallet.get()).toEqual({ ...before, epoch: expect.any(Number) })
      expect((await wallet.entries({ limit: 1_000 })).filter(({ key }) => key === 'again')).toHaveLength(1)
    })
  })
})

onBothPaths((path) => {
  it('does not mind other metadata, counter, durability, timeout or signal', async () => {
    const wallet = await path.wallet(100)
    const first = await wallet.debit(5, { key: 'a', metadata: 1, counter: 'fees' })
    const { signal } = new AbortController()
    for (const other of [
      { metadata: 2 },
      { counter: 'other' },
      { durability: 'memory' as const },
      { timeout: 5_000, signal },
    ]) {
      expect(await wallet.debit(5, { key: 'a', ...other })).toEqual({ ...first, replayed: true })
    }
  })

  it('tells what the key was used for, and of which hold where only that is another one', async () => {
    const wallet = await prepared(path)
    const capture = (hold: string, amount: number) => wallet.holdRef(hold).capture(amount, { key: 'a' })
    await capture('h', 5)
    const used = { expected: 'capture 5 reject' }
    expect((await refusal(capture('h', 6))).facts).toEqual({ ...used, got: 'capture 6 reject' })
    expect((await refusal(wallet.credit(5, { key: 'a' }))).facts).toEqual({ ...used, got: 'credit 5' })
    const holds = { expectedHold: 'h', gotHold: 'other' }
    expect((await refusal(capture('other', 5))).facts).toEqual({ ...used, got: 'capture 5 reject', ...holds })
  })

  it('tries a key anew that was refused', async () => {
    const wallet = await path.wallet(10)
    expect(await refusal(wallet.debit(20, { key: 'a' }))).toMatchObject({ code: 'insufficient_funds' })
    await wallet.credit(10, { key: 'b' })
    expect(await wallet.debit(20, { key: 'a' })).toMatchObject({ available: 0, replayed: false })
    // Refused once, it may even become something else.
    expect(await refusal(wallet.debit(1, { key: 'c' }))).toMatchObject({ code: 'insufficient_funds' })
    expect(await wallet.credit(7, { key: 'c' })).toMatchObject({ replayed: false })
  })

  it('makes one entry of a key that comes several times at once', async () => {
    const wallet = await path.wallet(100)
    const other = await path.another()
    const calls = Array.from({ length: 12 }, (_, i) =>
      (i % 2 ? other.wallet(wallet.id) : wallet).debit(5, { key: 'once' }),
    )
    const receipts = await Promise.all(calls)
    await other.close()
    expect(receipts.filter(({ replayed }) => !replayed).length).toBeLessThanOrEqual(1)
    expect(new Set(receipts.map(({ entry }) => entry.hash)).size).toBe(1)
    expect(await wallet.get()).toMatchObject({ available: 95, seq: 2 })
  })

  it('asks the journal first when it is told that the key was tried before', async () => {
    const wallet = await path.wallet(100)
    const first = await wallet.debit(5, { key: 'a' })
    expect(await wallet.debit(5, { key: 'a', retry: true })).toEqual({ ...first, replayed: true })
    expect(await refusal(wallet.debit(6, { key: 'a', retry: true }))).toMatchObject({ code: 'idempotency_conflict' })
    expect(await wallet.debit(5, { key: 'new', retry: true })).toMatchObject({ available: 90, replayed: false })
  })

  it('repeats the answer of a debit that could not be afforded any more', async () => {
    const wallet = await path.wallet(100)
    const first = await wallet.debit(60, { key: 'a' })
    await wallet.debit(40, { key: 'b' })
    await Promise.all(Array.from({ length: 70 }, (_, i) => wallet.setCreditLimit(i, { key: `later ${i}` })))
    await wallet.setCreditLimit(0, { key: 'none' })
    expect(await wallet.debit(60, { key: 'a' })).toEqual({ ...first, replayed: true })
  })

  it('keeps the keys of wallets apart', async () => {
    const [one, two] = [await path.wallet(100), await path.wallet(100)]
    await one.debit(5, { key: 'same' })
    expect(await two.debit(6, { key: 'same' })).toMatchObject({ available: 94, replayed: false })
  })

  it('repeats what another process did', async () => {
    const wallet = await path.wallet(100)
    const first = await wallet.debit(5, { key: 'a' })
    const other = await path.another()
    const again = await other.wallet(wallet.id).debit(5, { key: 'a' })
    await other.close()
    expect(again).toEqual({ ...first, replayed: true })
  })
})
