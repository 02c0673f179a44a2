import { expect, it } from 'vitest'
import { onBothPaths, passes, refusal } from './support/paths.js'

const HOUR = 3_600_000

onBothPaths((path) => {
  it('refuses to spend and reserve while frozen, and allows the rest', async () => {
    const wallet = await path.wallet(100)
    const hold = await wallet.hold(60, { key: 'call', ttl: HOUR })
    const other = await wallet.hold(5, { key: 'other', ttl: HOUR })
    const brief = await wallet.hold(3, { key: 'brief', ttl: 1_000 })
    expect(await wallet.freeze({ key: 'freeze' })).toMatchObject({ entry: { kind: 'freeze', amount: 0 } })
    expect(await wallet.get()).toMatchObject({ status: 'frozen' })

    for (const call of [
      () => wallet.debit(1, { key: 'no' }),
      () => wallet.hold(1, { key: 'no', ttl: HOUR }),
      () => hold.extend({ amount: 1, key: 'no' }),
      () => hold.extend({ amount: 1, ttl: HOUR, key: 'no' }),
      () => hold.capture(61, { key: 'no', beyond: 'available' }),
      () => hold.settle(61, { key: 'no', beyond: 'available' }),
    ]) {
      expect(await refusal(call())).toMatchObject({ code: 'wallet_frozen', status: 409 })
    }
    expect(await refusal(hold.capture(61, { key: 'no' }))).toMatchObject({ code: 'hold_exceeded' })

    await wallet.credit(10, { key: 'credit' })
    await hold.extend({ ttl: 2 * HOUR, key: 'longer' })
    const { entry } = await hold.capture(20, { key: 'capture', beyond: 'available' })
    await wallet.refund(entry.seq, 20, { key: 'refund' })
    await wallet.setCreditLimit(7, { key: 'limit' })
    await hold.settle(40, { key: 'settle' })
    await other.release({ key: 'release' })
    await passes(brief.expiresAt)
    expect(await refusal(brief.release({ key: 'late' }))).toMatchObject({ code: 'hold_expired' })
    expect(await wallet.get()).toMatchObject({ available: 90, reserved: 0, status: 'frozen' })

    await wallet.unfreeze({ key: 'unfreeze' })
    expect(await wallet.debit(1, { key: 'no' })).toMatchObject({ available: 89 })
    expect(await wallet.get()).toMatchObject({ status: 'active' })
  })

  it('closes only what is empty', async () => {
    const wallet = await path.wallet(100)
    expect(await refusal(wallet.close({ key: 'close' }))).toMatchObject({
      code: 'wallet_not_empty',
      status: 409,
      available: 100,
      reserved: 0,
    })
    const hold = await wallet.hold(100, { key: 'call', ttl: HOUR })
    await hold.capture(100, { key: 'all' })
    // Nothing left in it, and still open.
    expect(await refusal(wallet.close({ key: 'close' }))).toMatchObject({ code: 'wallet_not_empty', available: 0 })
    await hold.settle(100, { key: 'end' })
    expect(await wallet.close({ key: 'close' })).toMatchObject({ available: 0, reserved: 0, entry: { kind: 'close' } })
    expect(await wallet.get()).toMatchObject({ status: 'closed' })
  })

  it('refuses everything but reading once closed, and still repeats old answers', async () => {
    const wallet = await path.wallet()
    const credit = await wallet.credit(10, { key: 'in' })
    const debit = await wallet.debit(10, { key: 'out' })
    const close = await wallet.close({ key: 'close' })
    for (const call of [
      () => wallet.credit(1, { key: 'no' }),
      () => wallet.debit(1, { key: 'no' }),
      () => wallet.hold(1, { key: 'no', ttl: HOUR }),
      () => wallet.refund(debit.entry.seq, 1, { key: 'no' }),
      // Closed comes before what there is to give back.
      () => wallet.refund(1_000, 1, { key: 'no' }),
      () => wallet.freeze({ key: 'no' }),
      () => wallet.unfreeze({ key: 'no' }),
      () => wallet.setCreditLimit(1, { key: 'no' }),
      () => wallet.close({ key: 'no' }),
      () => wallet.holdRef('none').release({ key: 'no' }),
    ]) {
      expect(await refusal(call())).toMatchObject({ code: 'wallet_closed', status: 409 })
    }
    expect(await wallet.credit(10, { key: 'in' })).toEqual({ ...credit, replayed: true })
    expect(await wallet.close({ key: 'close' })).toEqual({ ...close, replayed: true })
    expect(await refusal(wallet.credit(11, { key: 'in' }))).toMatchObject({ code: 'idempotency_conflict' })
    expect(await wallet.entries()).toHaveLength(3)
    expect(await wallet.open({ currency: 'usd' })).toMatchObject({ status: 'closed' })
  })
})
