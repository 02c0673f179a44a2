import { expect, it } from 'vitest'
import type { Entry, MeterOptions, Wallet } from '../../src/index.js'
import { onBothPaths, passes, refusal, until } from './support/paths.js'

const HOUR = 3_600_000
/** 3 a unit, 100 units at a time: 300 reserved, and the next 300 when more than 240 are used. */
const UNITS = { by: 'units', rate: 3, reserve: 100 } as const
const CALL = { by: 'time', rate: 20, per: 60_000, reserve: 600_000 } as const

const kinds = (entries: readonly Entry[]) => entries.map(({ kind }) => kind)

/** The journal alone: every charge and every extension stands in it once, and `reserved` is what is left of them at every step. */
async function checkJournal(wallet: Wallet, session: string): Promise<void> {
  let reserved = 0
  let charged = 0
  for (const { hold, reservedDelta, availableDelta, reserved: after } of await wallet.entries({ limit: 1_000 })) {
    if (hold !== session) continue
    reserved -= availableDelta
    charged -= availableDelta + reservedDelta
    expect(after).toBe(reserved - charged)
  }
  expect(reserved).toBe(charged)
}

onBothPaths((path) => {
  it('begins as a hold of one stretch, under the id that is its key', async () => {
    const wallet = await path.wallet(1_000)
    const session = await wallet.meter({ ...UNITS, key: 'chat', metadata: { chat: 1 } })
    expect(session).toMatchObject({
      id: 'chat',
      walletId: wallet.id,
      by: 'units',
      charged: 0,
      reserved: 300,
      left: 300,
      unitsLeft: 100,
      runsOutAt: null,
      final: false,
      ended: false,
      endedBy: null,
    })
    expect(session.expiresAt).toBe(session.startedAt + 60_000)
    expect(session.receipt).toMatchObject({ available: 700, reserved: 300, replayed: false, durability: 'ledger' })
    expect(session.receipt.entry).toMatchObject({ kind: 'hold', hold: 'chat', amount: 300, metadata: { chat: 1 } })
    expect(await wallet.meter({ ...UNITS, key: 'chat' })).toMatchObject({ receipt: { replayed: true }, reserved: 300 })
  })

  it.each<[string, Partial<MeterOptions>]>([
    ['rate', { rate: 4 }],
    ['reserve', { reserve: 101 }],
    ['minimum', { minimum: 5 }],
    ['heartbeat', { heartbeat: 61_000 }],
    ['share', { extendAt: 0.5 }],
  ])('takes another %s under the same key for a conflict', async (_, other) => {
    const wallet = await path.wallet(1_000)
    await wallet.meter({ ...UNITS, key: 'chat' })
    const conflict = refusal(wallet.meter({ ...UNITS, key: 'chat', ...other } as MeterOptions))
    expect(await conflict).toMatchObject({ code: 'idempotency_conflict' })
    expect(await refusal(wallet.hold(300, { key: 'chat', ttl: HOUR }))).toMatchObject({ code: 'idempotency_conflict' })
  })

  it('charges totals, extends in the same step at the line, and returns the rest in the end', async () => {
    const wallet = await path.wallet(1_000)
    const session = await wallet.meter({ ...UNITS, key: 'chat' })
    const before = await session.tick({ total: 80 })
    expect(before).toMatchObject({ charged: 240, reserved: 300, left: 60, unitsLeft: 20, final: false })
    const line = await session.tick({ total: 81 })
    expect(line).toMatchObject({ charged: 243, reserved: 600, left: 357, unitsLeft: 119, final: false })
    expect(line.receipt.entry).toMatchObject({ kind: 'tick', amount: 3, availableDelta: -300, reservedDelta: 297 })
    expect(line.receipt).toMatchObject({ available: 400, reserved: 357 })
    // Told again, or of less: nothing.
    expect(await session.tick({ total: 81 })).toMatchObject({
      charged: 243,
      reserved: 600,
      receipt: { available: 400 },
    })
    expect(await session.tick({ total: 7 })).toMatchObject({ charged: 243, reserved: 600, receipt: { available: 400 } })
    const end = await session.end({ total: 100 })
    expect(end).toMatchObject({ charged: 300, left: 0, ended: true, endedBy: 'end', final: true, unitsLeft: 0 })
    expect(end.receipt).toMatchObject({ available: 700, reserved: 0, replayed: false, entry: { kind: 'settle' } })
    await checkJournal(wallet, 'chat')
  })

  it('extends once when many ticks cross the line at the same time, from several processes', async () => {
    const wallet = await path.wallet(10_000)
    const session = await wallet.meter({ ...UNITS, key: 'chat' })
    const other = await path.another()
    const elsewhere = other.wallet(wallet.id).sessionRef('chat')
    const ticks = await Promise.all(
      Array.from({ length: 40 }, (_, n) => (n % 2 ? session : elsewhere).tick({ total: 70 + n })),
    )
    await other.close()
    expect(Math.max(...ticks.map(({ charged }) => charged))).toBe(327)
    for (const { reserved } of ticks) expect([300, 600]).toContain(reserved)
    expect(await wallet.get()).toMatchObject({ available: 9_400, reserved: 273 })
    const extensions = (await wallet.entries()).filter(
      ({ kind, availableDelta }) => kind === 'tick' && availableDelta < 0,
    )
    expect(extensions).toHaveLength(1)
    await session.end({ total: 109 })
    expect(await wallet.get()).toMatchObject({ available: 10_000 - 327, reserved: 0 })
    await checkJournal(wallet, 'chat')
  })

  it('takes what is left when it is less than a stretch, says so, and goes on after a top-up', async () => {
    const wallet = await path.wallet(400)
    const session = await wallet.meter({ ...UNITS, key: 'chat' })
    expect(await session.tick({ total: 81 })).toMatchObject({ reserved: 400, left: 157, unitsLeft: 52, final: true })
    expect(await session.tick({ total: 140 })).toMatchObject({ charged: 400, left: 0, unitsLeft: 0, final: true })
    await wallet.credit(1_000, { key: 'top-up' })
    expect(await session.tick({ total: 140 })).toMatchObject({ charged: 420, reserved: 600, left: 180, final: false })
    expect(await session.end({ total: 150 })).toMatchObject({ charged: 450, receipt: { available: 950, reserved: 0 } })
  })

  it('needs the minimum to begin, and then takes what is there', async () => {
    const wallet = await path.wallet(100)
    const poor = refusal(wallet.meter({ ...UNITS, key: 'chat', minimum: 101 }))
    expect(await poor).toMatchObject({ code: 'insufficient_funds', status: 409, available: 100 })
    const session = await wallet.meter({ ...UNITS, key: 'chat', minimum: 100 })
    expect(session).toMatchObject({ reserved: 100, left: 100, unitsLeft: 33, final: true })
    const unpaid = await path.wallet(2)
    expect(await refusal(unpaid.meter({ ...UNITS, key: 'chat' }))).toMatchObject({ code: 'insufficient_funds' })
    const onCredit = await path.wallet(0, { creditLimit: 50 })
    expect(await onCredit.meter({ ...UNITS, key: 'chat' })).toMatchObject({ reserved: 50, final: true })
  })

  it('of a frozen wallet is refused, or uses up what it has', async () => {
    const wallet = await path.wallet(1_000)
    const session = await wallet.meter({ ...UNITS, key: 'chat' })
    await wallet.freeze({ key: 'freeze' })
    expect(await refusal(wallet.meter({ ...UNITS, key: 'other' }))).toMatchObject({ code: 'wallet_frozen' })
    expect(await session.tick({ total: 90 })).toMatchObject({ charged: 270, reserved: 300, final: true })
    expect(await session.end({ total: 200 })).toMatchObject({ charged: 300, receipt: { available: 700 } })
  })

  it.each([
    ['started', (elapsed: number) => Math.max(1, Math.ceil(elapsed / 7)) * 2],
    ['completed', (elapsed: number) => Math.floor(elapsed / 7) * 2],
    ['prorated', (elapsed: number) => Math.floor((elapsed * 2) / 7)],
  ] as const)('by time charges periods as they are %s, by the time of the entry', async (rounding, due) => {
    const wallet = await path.wallet(100_000)
    const session = await wallet.meter({
      by: 'time',
      rate: 2,
      per: 7,
      reserve: 40,
      rounding,
      key: 'call',
      heartbeat: HOUR,
    })
    expect(session).toMatchObject({ by: 'time', unitsLeft: null, reserved: 12 })
    await until(() => Date.now() > session.startedAt + 120)
    const ticks = await Promise.all([session.tick(), session.tick(), session.tick()])
    for (const { charged, receipt } of ticks) expect(charged).toBe(due(receipt.entry.at - session.startedAt))
    const { charged, receipt } = await session.end()
    expect(charged).toBe(due(receipt.entry.at - session.startedAt))
    expect(receipt).toMatchObject({ available: 100_000 - charged, reserved: 0 })
    await checkJournal(wallet, 'call')
  })

  it('by time says when the money runs out', async () => {
    const wallet = await path.wallet(250)
    const session = await wallet.meter({ ...CALL, key: 'call' })
    expect(session).toMatchObject({ reserved: 200, final: false, unitsLeft: null })
    expect(session.runsOutAt).toBe(session.startedAt + 600_000)
    expect(session.expiresAt).toBe(session.startedAt + 120_000)
    const tick = await session.tick()
    expect(tick).toMatchObject({ charged: 20, reserved: 200, left: 180, runsOutAt: session.runsOutAt })
    const rest = await wallet.meter({ ...CALL, rounding: 'prorated', key: 'other' })
    expect(rest).toMatchObject({ reserved: 50, final: true, runsOutAt: rest.startedAt + 150_000 })
    expect(await session.end()).toMatchObject({ charged: 20, runsOutAt: null, receipt: { available: 180 } })
  })

  it('rounds what is reserved up to whole periods, unless they are prorated', async () => {
    const wallet = await path.wallet(1_000)
    expect(await wallet.meter({ ...CALL, reserve: 61_000, key: 'a' })).toMatchObject({ reserved: 40 })
    expect(await wallet.meter({ ...CALL, reserve: 61_000, rounding: 'completed', key: 'b' })).toMatchObject({
      reserved: 40,
    })
    expect(await wallet.meter({ ...CALL, reserve: 61_000, rounding: 'prorated', key: 'c' })).toMatchObject({
      reserved: 21,
    })
  })

  it('ended twice, with whatever total, gives the first answer', async () => {
    const wallet = await path.wallet(1_000)
    const session = await wallet.meter({ ...UNITS, key: 'chat' })
    const first = await session.end({ total: 10 })
    for (const total of [10, 11, 0]) {
      expect(await session.end({ total })).toEqual({ ...first, receipt: { ...first.receipt, replayed: true } })
    }
    expect(await session.tick({ total: 50 })).toMatchObject({ charged: 30, ended: true, endedBy: 'end' })
    expect(kinds(await wallet.entries())).toEqual(['credit', 'hold', 'settle'])
  })

  it('ended by many at once ends once', async () => {
    const wallet = await path.wallet(1_000)
    const session = await wallet.meter({ ...UNITS, key: 'chat' })
    const race = await Promise.all(Array.from({ length: 10 }, (_, n) => session.end({ total: n })))
    expect(new Set(race.map(({ receipt }) => receipt.entry.hash)).size).toBe(1)
    expect(kinds(await wallet.entries())).toEqual(['credit', 'hold', 'settle'])
  })

  it('ended without a total keeps what was charged', async () => {
    const wallet = await path.wallet(1_000)
    const session = await wallet.meter({ ...UNITS, key: 'chat' })
    await session.tick({ total: 10 })
    expect(await session.end()).toMatchObject({ charged: 30, receipt: { available: 970, reserved: 0 } })
  })

  it('without a heartbeat ends with what was charged, and stays so', async () => {
    const wallet = await path.wallet(1_000)
    const session = await wallet.meter({ ...UNITS, key: 'chat', heartbeat: 3_000 })
    const tick = await session.tick({ total: 10 })
    expect(tick.expiresAt).toBe(tick.receipt.entry.at + 3_000)
    await passes(tick.expiresAt)
    const late = await session.tick({ total: 50 })
    expect(late).toMatchObject({ charged: 30, left: 0, ended: true, endedBy: 'expiry', receipt: { replayed: true } })
    expect(await session.end({ total: 50 })).toMatchObject({ charged: 30, endedBy: 'expiry' })
    expect(await session.get()).toMatchObject({ charged: 30, endedBy: 'expiry', reserved: 300 })
    expect(await wallet.get()).toMatchObject({ available: 970, reserved: 0 })
    expect(kinds(await wallet.entries())).toEqual(['credit', 'hold', 'tick', 'expire'])
  })

  it('closed as the hold that it is has ended', async () => {
    const wallet = await path.wallet(1_000)
    const released = await wallet.meter({ ...UNITS, key: 'released' })
    await released.tick({ total: 10 })
    await wallet.holdRef('released').release({ key: 'release' })
    expect(await released.tick({ total: 20 })).toMatchObject({ charged: 30, endedBy: 'release' })
    const settled = await wallet.meter({ ...UNITS, key: 'settled' })
    await wallet.holdRef('settled').settle(5, { key: 'settle' })
    expect(await settled.end({ total: 20 })).toMatchObject({ charged: 5, endedBy: 'settle' })
    await wallet.debit(965, { key: 'out' })
    await wallet.close({ key: 'close' })
    expect(await released.tick({ total: 30 })).toMatchObject({ charged: 30, endedBy: 'release' })
  })

  it('takes captures of its hold for charged', async () => {
    const wallet = await path.wallet(1_000)
    const session = await wallet.meter({ ...UNITS, key: 'chat' })
    await wallet.holdRef('chat').capture(350, { key: 'fee', beyond: 'available' })
    expect(await session.tick({ total: 110 })).toMatchObject({ charged: 350, reserved: 600, left: 300 })
    expect(await session.tick({ total: 120 })).toMatchObject({ charged: 360, reserved: 600, left: 290 })
    expect(await session.end({ total: 120 })).toMatchObject({ charged: 360, receipt: { available: 640, reserved: 0 } })
  })

  it('goes on from its id, in another process', async () => {
    const wallet = await path.wallet(1_000)
    await wallet.meter({ ...UNITS, key: 'chat' })
    const other = await path.another()
    const session = other.wallet(wallet.id).sessionRef('chat')
    expect(await session.get()).toMatchObject({ id: 'chat', charged: 0, reserved: 300, final: false })
    expect(await session.tick({ total: 81 })).toMatchObject({ charged: 243, reserved: 600 })
    expect(await session.get()).toMatchObject({ charged: 243, reserved: 600, unitsLeft: 119, ended: false })
    expect(await session.end({ total: 81 })).toMatchObject({ charged: 243, endedBy: 'end' })
    expect(await session.get()).toMatchObject({ charged: 243, ended: true })
    await other.close()
  })

  it('is found only where there is one', async () => {
    const wallet = await path.wallet(100)
    await wallet.hold(10, { key: 'hold', ttl: HOUR })
    await wallet.debit(1, { key: 'debit' })
    for (const id of ['none', 'hold', 'debit']) {
      expect(await refusal(wallet.sessionRef(id).tick({ total: 1 }))).toMatchObject({ code: 'session_not_found' })
      expect(await refusal(wallet.sessionRef(id).get())).toMatchObject({ code: 'session_not_found', status: 404 })
    }
    const nobody = path.hf.wallet('nobody').sessionRef('none')
    expect(await refusal(nobody.end())).toMatchObject({ code: 'wallet_not_found' })
    // Asked again it is looked for again.
    const later = wallet.sessionRef('later')
    await refusal(later.get())
    await wallet.meter({ ...UNITS, key: 'later' })
    expect(await later.get()).toMatchObject({ id: 'later' })
  })

  it('is told of in its own measure', async () => {
    const wallet = await path.wallet(1_000)
    const chat = await wallet.meter({ ...UNITS, key: 'chat' })
    const call = await wallet.meter({ ...CALL, key: 'call' })
    expect((await refusal(chat.tick())).message).toBe('total: expected an integer, got nothing')
    expect((await refusal(call.tick({ total: 1 }))).message).toBe('total: expected none for a session by time, got 1')
    expect((await refusal(call.end({ total: 1 }))).message).toBe('total: expected none for a session by time, got 1')
    expect(kinds(await wallet.entries())).toEqual(['credit', 'hold', 'hold'])
  })

  it('has ticks that can be given back like any charge', async () => {
    const wallet = await path.wallet(1_000)
    const session = await wallet.meter({ ...UNITS, key: 'chat' })
    const { receipt } = await session.tick({ total: 10 })
    expect(await refusal(wallet.refund(receipt.entry.seq, 31, { key: 'r' }))).toMatchObject({ left: 30 })
    expect(await wallet.refund(receipt.entry.seq, 12, { key: 'r' })).toMatchObject({ available: 712, reserved: 270 })
    // What was given back is not charged again.
    expect(await session.tick({ total: 10 })).toMatchObject({ charged: 30, receipt: { available: 712 } })
    expect(await session.get()).toMatchObject({ charged: 30, left: 270 })
    expect(await session.end({ total: 20 })).toMatchObject({ charged: 60, receipt: { available: 952, reserved: 0 } })
    expect(await wallet.refund(receipt.entry.seq, 18, { key: 's' })).toMatchObject({ available: 970 })
  })
})
