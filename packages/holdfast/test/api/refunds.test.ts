import { expect, it } from 'vitest'
import { onBothPaths, refusal } from './support/paths.js'

const HOUR = 3_600_000

onBothPaths((path) => {
  it('gives back a debit: partly, repeatedly, and never more than it was', async () => {
    const wallet = await path.wallet(100)
    const { entry } = await wallet.debit(60, { key: 'out' })
    const first = await wallet.refund(entry.seq, 25, { key: 'r1', metadata: 'sorry' })
    expect(first).toMatchObject({ available: 65, replayed: false })
    expect(first.entry).toMatchObject({
      kind: 'refund',
      of: entry.seq,
      amount: 25,
      availableDelta: 25,
      metadata: 'sorry',
    })
    expect(await refusal(wallet.refund(entry.seq, 36, { key: 'r2' }))).toMatchObject({
      code: 'refund_exceeded',
      status: 409,
      left: 35,
    })
    expect(await wallet.refund(entry.seq, 35, { key: 'r2' })).toMatchObject({ available: 100 })
    expect(await refusal(wallet.refund(entry.seq, 1, { key: 'r3' }))).toMatchObject({
      code: 'refund_exceeded',
      left: 0,
    })
    expect(await wallet.refund(entry.seq, 25, { key: 'r1' })).toEqual({ ...first, replayed: true })
  })

  it('gives back captures of an open hold, each up to its own amount', async () => {
    const wallet = await path.wallet(100)
    const hold = await wallet.hold(60, { key: 'call', ttl: HOUR })
    const first = await hold.capture(20, { key: 'c1' })
    const second = await hold.capture(10, { key: 'c2' })
    expect(await refusal(wallet.refund(first.entry.seq, 21, { key: 'r1' }))).toMatchObject({ left: 20 })
    const refund = await wallet.refund(first.entry.seq, 20, { key: 'r1' })
    expect(refund).toMatchObject({ available: 60, reserved: 30, entry: { hold: 'call' } })
    expect(await wallet.refund(second.entry.seq, 4, { key: 'r2' })).toMatchObject({ available: 64 })
    // What was refunded stays refunded: the hold goes on as it was.
    expect(await hold.capture(30, { key: 'c3' })).toMatchObject({ reserved: 0, hold: { captured: 60, left: 0 } })
  })

  it('gives the first answer to a marked retry of what came out of a hold', async () => {
    const wallet = await path.wallet(100)
    const hold = await wallet.hold(60, { key: 'call', ttl: HOUR })
    const { entry } = await hold.capture(20, { key: 'c' })
    const first = await wallet.refund(entry.seq, 5, { key: 'r' })
    expect(await wallet.refund(entry.seq, 5, { key: 'r', retry: true })).toEqual({ ...first, replayed: true })
    expect(await refusal(wallet.refund(entry.seq, 6, { key: 'r', retry: true }))).toMatchObject({
      code: 'idempotency_conflict',
    })
  })

  it('gives back a settle and the captures of a closed hold', async () => {
    const wallet = await path.wallet(100)
    const hold = await wallet.hold(60, { key: 'call', ttl: HOUR })
    const capture = await hold.capture(20, { key: 'c' })
    const settle = await hold.settle(50, { key: 's' })
    expect(await refusal(wallet.refund(settle.entry.seq, 31, { key: 'r1' }))).toMatchObject({ left: 30 })
    expect(await wallet.refund(settle.entry.seq, 30, { key: 'r1' })).toMatchObject({ available: 80 })
    expect(await wallet.refund(capture.entry.seq, 20, { key: 'r2' })).toMatchObject({ available: 100 })
    expect(await refusal(wallet.refund(capture.entry.seq, 1, { key: 'r3' }))).toMatchObject({ left: 0 })
  })

  it('gives back what was captured before a release', async () => {
    const wallet = await path.wallet(100)
    const hold = await wallet.hold(60, { key: 'call', ttl: HOUR })
    const { entry } = await hold.capture(20, { key: 'c' })
    await hold.release({ key: 'r' })
    expect(await wallet.refund(entry.seq, 20, { key: 'r1' })).toMatchObject({ available: 100, reserved: 0 })
  })

  it('gives nothing back twice when a settle below the captured did so already', async () => {
    const wallet = await path.wallet(100)
    const hold = await wallet.hold(60, { key: 'call', ttl: HOUR })
    const { entry } = await hold.capture(50, { key: 'c' })
    await hold.settle(10, { key: 's' })
    expect(await refusal(wallet.refund(entry.seq, 11, { key: 'r' }))).toMatchObject({
      code: 'refund_exceeded',
      left: 10,
    })
    expect(await wallet.refund(entry.seq, 10, { key: 'r' })).toMatchObject({ available: 100 })
  })

  it('settles not below what was refunded', async () => {
    const wallet = await path.wallet(100)
    const hold = await wallet.hold(60, { key: 'call', ttl: HOUR })
    const { entry } = await hold.capture(50, { key: 'c' })
    await wallet.refund(entry.seq, 30, { key: 'r' })
    expect(await refusal(hold.settle(29, { key: 's' }))).toMatchObject({ code: 'refund_exceeded' })
    expect(await hold.settle(30, { key: 's' })).toMatchObject({ available: 100, reserved: 0 })
    expect(await refusal(wallet.refund(entry.seq, 1, { key: 'r2' }))).toMatchObject({
      code: 'refund_exceeded',
      left: 0,
    })
  })

  it('finds nothing to refund in what charged nothing', async () => {
    const wallet = await path.wallet(100)
    const hold = await wallet.hold(10, { key: 'h', ttl: HOUR })
    const credit = 1
    for (const seq of [credit, hold.receipt.entry.seq, 77]) {
      expect(await refusal(wallet.refund(seq, 1, { key: 'r' }))).toMatchObject({ code: 'entry_not_found', status: 404 })
    }
    // The rejected key is free.
    const { entry } = await wallet.debit(5, { key: 'd' })
    expect(await wallet.refund(entry.seq, 1, { key: 'r' })).toMatchObject({ replayed: false })
  })

  it('lets refunds that race give back no more than there is', async () => {
    const wallet = await path.wallet(100)
    const { entry } = await wallet.debit(50, { key: 'd' })
    const race = await Promise.allSettled(
      Array.from({ length: 8 }, (_, i) => wallet.refund(entry.seq, 20, { key: `r${i}` })),
    )
    expect(race.filter(({ status }) => status === 'fulfilled')).toHaveLength(2)
    expect(await wallet.get()).toMatchObject({ available: 90 })
  })

  it('lets refunds of several charges of one hold give back no more than the hold cost', async () => {
    const wallet = await path.wallet(100)
    const hold = await wallet.hold(60, { key: 'call', ttl: HOUR })
    const first = await hold.capture(30, { key: 'c1' })
    const second = await hold.capture(30, { key: 'c2' })
    await hold.settle(35, { key: 's' })
    const race = await Promise.allSettled([
      wallet.refund(first.entry.seq, 30, { key: 'r1' }),
      wallet.refund(second.entry.seq, 30, { key: 'r2' }),
    ])
    expect(race.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(await wallet.get()).toMatchObject({ available: 95 })
  })
})
