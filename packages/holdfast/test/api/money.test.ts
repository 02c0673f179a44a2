import { expect, it } from 'vitest'
import { onBothPaths, refusal } from './support/paths.js'

onBothPaths((path) => {
  it('credits and debits, and writes each down', async () => {
    const wallet = await path.wallet()
    const credit = await wallet.credit(500, {
      key: 'in',
      metadata: { from: 'card', note: 'é "\\ 🙂' },
      counter: 'stripe',
    })
    expect(credit).toMatchObject({ available: 500, reserved: 0, replayed: false, durability: 'ledger' })
    expect(credit.entry).toMatchObject({
      seq: 1,
      kind: 'credit',
      key: 'in',
      amount: 500,
      availableDelta: 500,
      reservedDelta: 0,
      available: 500,
      reserved: 0,
      counter: 'stripe',
      metadata: { from: 'card', note: 'é "\\ 🙂' },
    })
    const debit = await wallet.debit(120, { key: 'out' })
    expect(debit.entry).toMatchObject({
      seq: 2,
      kind: 'debit',
      availableDelta: -120,
      available: 380,
      counter: 'revenue',
    })
    expect(debit.entry.prev).toBe(credit.entry.hash)
    expect(debit.entry).not.toHaveProperty('metadata')
    expect(debit.entry).not.toHaveProperty('hold')
    expect(await wallet.entries()).toEqual([credit.entry, debit.entry])
    expect(await wallet.get()).toMatchObject({ available: 380, seq: 2, head: debit.entry.hash })
  })

  it.each([
    [null],
    [''],
    [0],
    [false],
    [[]],
    [{ deep: [{ a: null }] }],
    ['line\nbreak \u2028 \u0000 end'],
    ['x'.repeat(4_094)],
  ])('gives metadata back as it came: %#', async (metadata) => {
    const wallet = await path.wallet()
    const { entry } = await wallet.credit(1, { key: 'a', metadata })
    expect(entry.metadata).toEqual(metadata)
    expect((await wallet.entries())[0]?.metadata).toEqual(metadata)
  })

  it('creates nothing by rounding: a settle that would give back more than 2^53 at once is refused', async () => {
    const max = Number.MAX_SAFE_INTEGER
    const wallet = await path.wallet(0, { creditLimit: max })
    const hold = await wallet.hold(1, { key: 'h', ttl: 3_600_000 })
    await hold.capture(max - 1, { key: 'c', beyond: 'available' })
    await wallet.credit(max - 10, { key: 'in' })
    await hold.extend({ key: 'e', amount: max - 10 })
    expect(await refusal(hold.settle(0, { key: 's' }))).toMatchObject({ code: 'invalid_amount' })
    // What is left alone comes back: every number of it is exact.
    expect(await hold.settle(max - 1, { key: 's' })).toMatchObject({ available: -9, reserved: 0 })
  })

  it('pages through the journal', async () => {
    const wallet = await path.wallet()
    for (let i = 1; i <= 5; i += 1) await wallet.credit(i, { key: path.key() })
    const amounts = async (page: object) => (await wallet.entries(page)).map(({ amount }) => amount)
    expect(await amounts({ limit: 2 })).toEqual([1, 2])
    expect(await amounts({ after: 2, limit: 2 })).toEqual([3, 4])
    expect(await amounts({ after: 4 })).toEqual([5])
    expect(await amounts({ after: 5 })).toEqual([])
  })

  it('refuses to go below zero, tells what is there, and changes nothing', async () => {
    const wallet = await path.wallet(100)
    const before = await wallet.get()
    expect(await refusal(wallet.debit(101, { key: 'a' }))).toMatchObject({
      code: 'insufficient_funds',
      status: 409,
      retryable: false,
      available: 100,
    })
    expect(await wallet.get()).toEqual(before)
    await wallet.debit(100, { key: 'b' })
  })

  it('goes as far below zero as the limit allows', async () => {
    const wallet = await path.wallet(0, { creditLimit: 50 })
    expect(await wallet.debit(30, { key: 'a' })).toMatchObject({ available: -30 })
    expect(await refusal(wallet.hold(21, { key: 'b', ttl: 60_000 }))).toMatchObject({ available: -30 })
    expect(await wallet.hold(20, { key: 'b', ttl: 60_000 })).toMatchObject({
      receipt: { available: -50, reserved: 20 },
    })
  })

  it('changes the limit, but not below what is used of it', async () => {
    const wallet = await path.wallet(0, { creditLimit: 50 })
    await wallet.debit(30, { key: 'a' })
    expect(await refusal(wallet.setCreditLimit(29, { key: 'b' }))).toMatchObject({
      code: 'insufficient_funds',
      available: -30,
    })
    await wallet.setCreditLimit(30, { key: 'c' })
    expect(await refusal(wallet.debit(1, { key: 'd' }))).toMatchObject({ code: 'insufficient_funds' })
    await wallet.setCreditLimit(31, { key: 'e' })
    expect(await wallet.debit(1, { key: 'd' })).toMatchObject({ available: -31, replayed: false })
    expect(await wallet.get()).toMatchObject({ creditLimit: 31 })
  })

  it('is exact up to the last digit', async () => {
    const wallet = await path.wallet(Number.MAX_SAFE_INTEGER)
    const { entry } = await wallet.debit(9_007_199_254_740_990, { key: 'a' })
    expect(entry).toMatchObject({ amount: 9_007_199_254_740_990, available: 1 })
    await wallet.credit(9_007_199_254_740_989, { key: 'b' })
    expect(await wallet.get()).toMatchObject({ available: 9_007_199_254_740_990 })
  })

  it('refuses what would leave the exact range, held money included', async () => {
    const wallet = await path.wallet(Number.MAX_SAFE_INTEGER)
    await wallet.hold(10, { key: 'hold', ttl: 60_000 })
    const before = await wallet.get()
    expect(await refusal(wallet.credit(1, { key: 'a' }))).toMatchObject({ code: 'invalid_amount', status: 400 })
    expect(await wallet.get()).toEqual(before)
  })

  it('serves callers at once without giving anything away twice', async () => {
    const wallet = await path.wallet(100)
    const debits = await Promise.allSettled(Array.from({ length: 40 }, (_, i) => wallet.debit(5, { key: `d${i}` })))
    expect(debits.filter(({ status }) => status === 'fulfilled')).toHaveLength(20)
    for (const debit of debits) {
      if (debit.status === 'rejected') expect(debit.reason).toMatchObject({ code: 'insufficient_funds', available: 0 })
    }
    expect(await wallet.get()).toMatchObject({ available: 0, seq: 21 })
  })
})
