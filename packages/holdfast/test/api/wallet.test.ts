import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { Holdfast } from '../../src/index.js'

let hf: Holdfast

beforeAll(async () => {
  hf = await Holdfast.connect({
    redis: await freshRedis(),
    postgres: await freshDatabase(),
    // An answer that is late is not to be asked for again.
    redisOptions: { commandTimeoutMs: 20_000 },
  })
})
afterAll(() => hf.close())

describe('a wallet', () => {
  it('is opened, filled, held, captured, settled and read', async () => {
    const wallet = hf.wallet('user_42')
    expect(await wallet.get()).toBeNull()
    await wallet.open({ currency: 'usd' })
    const credit = await wallet.credit(50_000, { key: 'top-up', metadata: { from: 'card' } })
    expect(credit).toMatchObject({ available: 50_000, reserved: 0, replayed: false, durability: 'ledger' })
    const hold = await wallet.hold(2_000, { key: 'call-1', ttl: 900_000 })
    expect(hold).toMatchObject({ id: 'call-1', amount: 2_000, captured: 0, left: 2_000 })
    expect(await hold.capture(300, { key: 'minute-1' })).toMatchObject({ hold: { captured: 300, left: 1_700 } })
    expect(await hold.extend({ amount: 500, key: 'more' })).toMatchObject({ hold: { amount: 2_500, left: 2_200 } })
    const settled = await wallet.holdRef('call-1').settle(1_700, { key: 'end' })
    expect(settled).toMatchObject({ available: 48_300, reserved: 0, hold: { captured: 1_700, left: 0 } })
    expect(await wallet.get()).toMatchObject({ available: 48_300, reserved: 0, seq: 5, status: 'active' })
    expect((await wallet.entries()).map(({ kind, seq }) => `${seq} ${kind}`)).toEqual([
      '1 credit',
      '2 hold',
      '3 capture',
      '4 extend',
      '5 settle',
    ])
  })

  it('answers a key that was used before with the first answer', async () => {
    const wallet = hf.wallet('twice')
    await wallet.open({ currency: 'usd' })
    const first = await wallet.credit(100, { key: 'a' })
    expect(await wallet.credit(100, { key: 'a' })).toEqual({ ...first, replayed: true })
    await expect(wallet.credit(101, { key: 'a' })).rejects.toMatchObject({ code: 'idempotency_conflict' })
    expect(await wallet.get()).toMatchObject({ available: 100, seq: 1 })
  })

  it('tells what is there when there is too little', async () => {
    const wallet = hf.wallet('poor')
    await wallet.open({ currency: 'usd' })
    await wallet.credit(100, { key: 'a' })
    await expect(wallet.debit(101, { key: 'b' })).rejects.toMatchObject({ code: 'insufficient_funds', available: 100 })
    await expect(wallet.holdRef('nothing').release({ key: 'c' })).rejects.toMatchObject({ code: 'hold_not_found' })
  })
})
