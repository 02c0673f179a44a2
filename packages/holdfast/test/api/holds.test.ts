import { expect, it } from 'vitest'
import { onBothPaths, refusal } from './support/paths.js'

const HOUR = 3_600_000

onBothPaths((path) => {
  it('sets money aside under the id that is its key', async () => {
    const wallet = await path.wallet(100)
    const before = Date.now()
    const hold = await wallet.hold(60, { key: 'call', ttl: HOUR, metadata: { call: 1 } })
    expect(hold).toMatchObject({ id: 'call', walletId: wallet.id, amount: 60, captured: 0, left: 60 })
    expect(hold.expiresAt).toBeGreaterThanOrEqual(before + HOUR - 60_000)
    expect(hold.expiresAt).toBe(hold.receipt.entry.at + HOUR)
    expect(hold.receipt).toMatchObject({ available: 40, reserved: 60, replayed: false, durability: 'ledger' })
    expect(hold.receipt.entry).toMatchObject({ kind: 'hold', hold: 'call', availableDelta: -60, reservedDelta: 60 })
    expect(await refusal(wallet.hold(41, { key: 'more', ttl: HOUR }))).toMatchObject({ available: 40 })
    expect(await wallet.get()).toMatchObject({ available: 40, reserved: 60 })
  })

  it('lets a handle from its id do all that the hold can', async () => {
    const wallet = await path.wallet(100)
    await wallet.hold(60, { key: 'call', ttl: HOUR })
    const ref = wallet.holdRef('call')
    expect(await ref.capture(10, { key: 'a' })).toMatchObject({ hold: { id: 'call', captured: 10, left: 50 } })
    expect(await ref.release({ key: 'b' })).toMatchObject({ available: 90, reserved: 0, hold: { left: 0 } })
  })

  it('captures as often as wanted, and not more than is left', async () => {
    const wallet = await path.wallet(100)
    const hold = await wallet.hold(60, { key: 'call', ttl: HOUR })
    const first = await hold.capture(25, { key: 'a' })
    expect(first).toMatchObject({ available: 40, reserved: 35, hold: { amount: 60, captured: 25, left: 35 } })
    expect(first.entry).toMatchObject({ kind: 'capture', amount: 25, availableDelta: 0, reservedDelta: -25 })
    expect(await refusal(hold.capture(36, { key: 'b' }))).toMatchObject({
      code: 'hold_exceeded',
      status: 409,
      left: 35,
    })
    expect(await hold.capture(35, { key: 'b' })).toMatchObject({ reserved: 0, hold: { captured: 60, left: 0 } })
    expect(await refusal(hold.capture(1, { key: 'c' }))).toMatchObject({ code: 'hold_exceeded', left: 0 })
  })

  it('takes what the hold does not cover from the wallet when it may', async () => {
    const wallet = await path.wallet(100)
    const hold = await wallet.hold(60, { key: 'call', ttl: HOUR })
    const capture = await hold.capture(75, { key: 'a', beyond: 'available' })
    expect(capture).toMatchObject({ available: 25, reserved: 0, hold: { amount: 60, captured: 75, left: 0 } })
    expect(capture.entry).toMatchObject({ availableDelta: -15, reservedDelta: -60 })
    expect(await refusal(hold.capture(26, { key: 'b', beyond: 'available' }))).toMatchObject({
      code: 'insufficient_funds',
      available: 25,
    })
    expect(await hold.settle(100, { key: 'c', beyond: 'available' })).toMatchObject({
      available: 0,
      hold: { captured: 100 },
    })
  })

  it.each([
    ['nothing', 0, 100],
    ['less than was captured', 10, 90],
    ['what was captured', 25, 75],
    ['more, within the hold', 60, 40],
  ])('settles %s', async (_, total, available) => {
    const wallet = await path.wallet(100)
    const hold = await wallet.hold(60, { key: 'call', ttl: HOUR })
    await hold.capture(25, { key: 'a' })
    const settle = await hold.settle(total, { key: 'b' })
    expect(settle).toMatchObject({ available, reserved: 0, hold: { captured: total, left: 0 } })
    expect(settle.entry).toMatchObject({ kind: 'settle', amount: total, reservedDelta: -35, available })
    expect(await refusal(hold.settle(total, { key: 'c' }))).toMatchObject({ code: 'hold_closed' })
  })

  it('settles beyond the hold only when it may and can', async () => {
    const wallet = await path.wallet(100)
    const hold = await wallet.hold(60, { key: 'call', ttl: HOUR })
    await hold.capture(25, { key: 'a' })
    expect(await refusal(hold.settle(61, { key: 'b' }))).toMatchObject({ code: 'hold_exceeded', left: 35 })
    expect(await refusal(hold.settle(101, { key: 'b', beyond: 'available' }))).toMatchObject({
      code: 'insufficient_funds',
    })
    expect(await hold.settle(99, { key: 'b', beyond: 'available' })).toMatchObject({ available: 1, reserved: 0 })
  })

  it('extends by money', async () => {
    const wallet = await path.wallet(100)
    const hold = await wallet.hold(60, { key: 'call', ttl: HOUR })
    const more = await hold.extend({ amount: 30, key: 'a' })
    expect(more).toMatchObject({
      available: 10,
      reserved: 90,
      hold: { amount: 90, left: 90, expiresAt: hold.expiresAt },
    })
    expect(await refusal(hold.extend({ amount: 11, key: 'b' }))).toMatchObject({
      code: 'insufficient_funds',
      available: 10,
    })
  })

  it('extends by time, counted from now, and never shortens', async () => {
    const wallet = await path.wallet(100)
    const hold = await wallet.hold(60, { key: 'call', ttl: HOUR })
    const longer = await hold.extend({ ttl: 2 * HOUR, key: 'a' })
    expect(longer.hold.expiresAt).toBe(longer.entry.at + 2 * HOUR)
    expect(longer).toMatchObject({ available: 40, reserved: 60, entry: { amount: 0, availableDelta: 0 } })
    expect(await hold.extend({ ttl: 1, key: 'b' })).toMatchObject({ hold: { expiresAt: longer.hold.expiresAt } })
  })

  it('extends by both in one step', async () => {
    const wallet = await path.wallet(100)
    const hold = await wallet.hold(60, { key: 'call', ttl: HOUR })
    const both = await hold.extend({ amount: 40, ttl: 2 * HOUR, key: 'a' })
    expect(both).toMatchObject({
      available: 0,
      reserved: 100,
      hold: { amount: 100, expiresAt: both.entry.at + 2 * HOUR },
    })
    // Not enough money: not longer either.
    expect(await refusal(hold.extend({ amount: 1, ttl: 5 * HOUR, key: 'b' }))).toMatchObject({
      code: 'insufficient_funds',
    })
    expect(await hold.capture(1, { key: 'c' })).toMatchObject({ hold: { expiresAt: both.hold.expiresAt } })
  })

  it('releases what is left and keeps what was captured', async () => {
    const wallet = await path.wallet(100)
    const hold = await wallet.hold(60, { key: 'call', ttl: HOUR })
    await hold.capture(25, { key: 'a' })
    const release = await hold.release({ key: 'b' })
    expect(release).toMatchObject({ available: 75, reserved: 0, hold: { captured: 25, left: 0 } })
    expect(release.entry).toMatchObject({ kind: 'release', amount: 35, availableDelta: 35, reservedDelta: -35 })
  })

  it('tells a hold that is closed from one that never was', async () => {
    const wallet = await path.wallet(100)
    const settled = await wallet.hold(10, { key: 'settled', ttl: HOUR })
    const released = await wallet.hold(10, { key: 'released', ttl: HOUR })
    await settled.settle(5, { key: 'a' })
    await released.release({ key: 'b' })
    for (const hold of [settled, released]) {
      expect(await refusal(hold.capture(1, { key: 'c' }))).toMatchObject({ code: 'hold_closed', status: 409 })
      expect(await refusal(hold.extend({ ttl: 1, key: 'c' }))).toMatchObject({ code: 'hold_closed' })
      expect(await refusal(hold.release({ key: 'c' }))).toMatchObject({ code: 'hold_closed' })
    }
    // A credit's key is no hold, though it is in the journal.
    await wallet.credit(1, { key: 'credit' })
    for (const id of ['never', 'credit']) {
      const ref = wallet.holdRef(id)
      expect(await refusal(ref.capture(1, { key: 'd' }))).toMatchObject({ code: 'hold_not_found', status: 404 })
    }
    expect(await refusal((await path.wallet(5)).holdRef('settled').release({ key: 'e' }))).toMatchObject({
      code: 'hold_not_found',
    })
  })

  it('lets one of a settle and a release that race win', async () => {
    for (let round = 0; round < 5; round += 1) {
      const wallet = await path.wallet(100)
      const hold = await wallet.hold(60, { key: 'call', ttl: HOUR })
      const race = await Promise.allSettled([hold.settle(20, { key: 'a' }), hold.release({ key: 'b' })])
      const [settle, release] = race
      expect(race.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
      expect(await wallet.get()).toMatchObject({ available: settle.status === 'fulfilled' ? 80 : 100, reserved: 0 })
      const lost = settle.status === 'rejected' ? settle : (release as PromiseRejectedResult)
      expect(lost.reason).toMatchObject({ code: 'hold_closed' })
    }
  })
})
