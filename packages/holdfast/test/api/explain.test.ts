import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { tellStep } from '../../src/api/telling.js'
import { type HoldExplanation, HoldfastError, type Wallet } from '../../src/index.js'
import { onBothPaths, passes, refusal } from './support/paths.js'

const HOUR = 3_600_000

/** What must hold in every explanation: in each step, and in all. */
function addsUp({ hold, money, steps, more }: HoldExplanation): void {
  let left = 0
  for (const step of steps) {
    left += step.reserved + step.beyond - step.charged - step.returned
    expect(step.left).toBe(left)
    expect(step.charged - step.refunded).toBe(0 - step.entry.availableDelta - step.entry.reservedDelta)
  }
  expect(money.reserved + money.beyond).toBe(money.charged + money.returned + money.left)
  expect(money.spent + money.back + money.left).toBe(money.reserved + money.beyond)
  expect(hold).toMatchObject({ amount: money.reserved, captured: money.charged, left: money.left })
  expect(hold.refunded).toBe(money.refunded)
  if (more) return
  const sum = (name: 'reserved' | 'beyond' | 'charged' | 'returned' | 'refunded') =>
    steps.reduce((total, step) => total + step[name], 0)
  expect(money).toMatchObject({
    reserved: sum('reserved'),
    beyond: sum('beyond'),
    charged: sum('charged'),
    returned: sum('returned'),
    refunded: sum('refunded'),
  })
}

async function explained(wallet: Wallet, id: string): Promise<HoldExplanation> {
  const explanation = await wallet.holdRef(id).explain()
  addsUp(explanation)
  return explanation
}

it('has words for entries that do several things at once', () => {
  const money = { reserved: 200, beyond: 0, charged: 20, returned: 0, refunded: 0, left: 180, captured: 20 }
  const tell = (later: number, change = {}) =>
    tellStep({ kind: 'tick' } as never, { ...money, ...change, later }, 'usd')
  expect(tell(0)).toBe(
    'Tick: charged 20 minor units of usd out of the hold, reserved 200 minor units of usd more out of the available balance. 180 minor units of usd left in the hold.',
  )
  expect(tell(Date.UTC(2026, 0, 1), { reserved: 0, charged: 0 })).toBe(
    'Tick: now until 2026-01-01 00:00:00.000 UTC. 180 minor units of usd left in the hold.',
  )
  expect(tell(0, { reserved: 0, charged: 0 })).toBe('Tick: no change. 180 minor units of usd left in the hold.')
})

onBothPaths((path) => {
  describe('an explanation', () => {
    it('tells the way of the money, entry by entry, and where it is now', async () => {
      const wallet = await path.wallet(50_000)
      const hold = await wallet.hold(2_000, { key: 'call-17', ttl: 900_000 })
      const { entry } = await hold.capture(300, { key: 'minute-1' })
      await wallet.debit(7, { key: 'something else' })
      await hold.extend({ amount: 1_000, ttl: HOUR, key: 'more' })
      await hold.settle(1_700, { key: 'end' })
      await wallet.credit(5, { key: 'something else again' })
      await wallet.refund(entry.seq, 100, { key: 'sorry' })

      const explanation = await explained(wallet, 'call-17')
      expect(explanation.money).toEqual({
        reserved: 3_000,
        beyond: 0,
        charged: 1_700,
        returned: 1_300,
        refunded: 100,
        left: 0,
        spent: 1_600,
        back: 1_400,
      })
      expect(explanation.hold).toEqual(await hold.get())
      expect(explanation.steps.map(({ entry: { seq, kind } }) => `${seq} ${kind}`)).toEqual([
        '2 hold',
        '3 capture',
        '5 extend',
        '6 settle',
        '8 refund',
      ])
      expect(explanation.steps.map((step) => step.entry)).toEqual(
        (await wallet.entries()).filter((one) => one.hold === 'call-17'),
      )
      const lines = explanation.text.replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} UTC/g, '<time>').split('\n')
      expect(lines).toEqual([
        `Hold call-17 of wallet ${wallet.id}, settled since <time>.`,
        '  entry 2, <time>: Reserved 2,000 minor units of usd out of the available balance, until <time>.',
        '  entry 3, <time>: Charged 300 minor units of usd out of the hold. 1,700 minor units of usd left in the hold.',
        '  entry 5, <time>: Reserved 1,000 minor units of usd more out of the available balance, now until <time>. 2,700 minor units of usd left in the hold.',
        '  entry 6, <time>: Settled at 1,700 minor units of usd in all: charged 1,400 minor units of usd out of the hold, returned 1,300 minor units of usd to the available balance.',
        '  entry 8, <time>: Refunded 100 minor units of usd of what entry 3 charged, to the available balance.',
        'Of 3,000 minor units of usd reserved: 1,700 minor units of usd charged, 1,300 minor units of usd returned, 0 minor units of usd still reserved.',
        'Of the charges 100 minor units of usd were refunded: 1,600 minor units of usd are spent, and 1,400 minor units of usd are back in the available balance.',
      ])
    })

    it('tells what was taken beyond the hold, and what a settle took back', async () => {
      const wallet = await path.wallet(1_000)
      const beyond = await wallet.hold(100, { key: 'beyond', ttl: HOUR })
      await beyond.capture(130, { key: 'c', beyond: 'available' })
      await beyond.settle(150, { key: 's', beyond: 'available' })
      const first = await explained(wallet, 'beyond')
      expect(first.money).toMatchObject({ reserved: 100, beyond: 50, charged: 150, returned: 0, spent: 150, back: 0 })
      expect(first.steps[1]?.text).toBe(
        'Charged 130 minor units of usd: 100 minor units of usd out of the hold, 30 minor units of usd out of the available balance. 0 minor units of usd left in the hold.',
      )
      expect(first.text).toContain(
        'Of 100 minor units of usd reserved and 50 minor units of usd taken beyond it: 150 minor units of usd charged',
      )

      const less = await wallet.hold(60, { key: 'less', ttl: HOUR })
      await less.capture(50, { key: 'c2' })
      await less.settle(10, { key: 's2' })
      const second = await explained(wallet, 'less')
      expect(second.money).toMatchObject({ reserved: 60, charged: 10, returned: 50, spent: 10, back: 50 })
      expect(second.steps[2]?.text).toBe(
        'Settled at 10 minor units of usd in all: took back 40 minor units of usd that had been charged before, returned 50 minor units of usd to the available balance.',
      )
    })

    it('tells of a hold that is open, released or expired', async () => {
      const wallet = await path.wallet(1_000)
      await wallet.hold(100, { key: 'open', ttl: HOUR })
      await wallet.holdRef('open').extend({ ttl: 2 * HOUR, key: 'e' })
      const open = await explained(wallet, 'open')
      expect(open.money).toMatchObject({ reserved: 100, charged: 0, returned: 0, left: 100 })
      expect(open.text).toMatch(/^Hold open of wallet [^,]+, open until /)
      expect(open.steps[1]?.text).toMatch(/^Reserved no more, now until .* 100 minor units of usd left in the hold\.$/)

      await wallet.hold(100, { key: 'released', ttl: HOUR })
      await wallet.holdRef('released').release({ key: 'x' })
      expect((await explained(wallet, 'released')).steps[1]?.text).toBe(
        'Released: returned 100 minor units of usd to the available balance.',
      )

      const expired = await wallet.hold(100, { key: 'expired', ttl: 3_000 })
      const { entry } = await expired.capture(40, { key: 'c' })
      await passes(expired.expiresAt)
      await wallet.credit(1, { key: 'touch' })
      await wallet.refund(entry.seq, 40, { key: 'r' })
      const last = await explained(wallet, 'expired')
      expect(last.steps[2]?.text).toBe('Expired: returned 60 minor units of usd to the available balance.')
      expect(last.money).toMatchObject({ spent: 0, back: 100, refunded: 40 })
    })

    it('adds up, whatever was done', async () => {
      const act = fc.record({
        what: fc.constantFrom('capture', 'capture', 'beyond', 'extend', 'refund', 'refund', 'settle', 'release'),
        amount: fc.integer({ min: 1, max: 60 }),
      })
      await fc.assert(
        fc.asyncProperty(fc.array(act, { minLength: 1, maxLength: 12 }), async (acts) => {
          const wallet = await path.wallet(1_000)
          const hold = await wallet.hold(100, { key: 'h', ttl: HOUR })
          const charges: number[] = []
          const perform = async ({ what, amount }: (typeof acts)[number]) => {
            const key = path.key()
            if (what === 'extend') return void (await hold.extend({ amount, key }))
            if (what === 'release') return void (await hold.release({ key }))
            const of = charges[amount % charges.length] ?? 1
            if (what === 'refund') return void (await wallet.refund(of, 1 + (amount >> 2), { key }))
            const { entry } =
              what === 'settle'
                ? await hold.settle(2 * amount, { key, beyond: 'available' })
                : await hold.capture(amount, { key, beyond: what === 'beyond' ? 'available' : 'reject' })
            charges.push(entry.seq)
          }
          // What is refused leaves nothing to be explained.
          for (const one of acts) await perform(one).catch((error) => HoldfastError.is(error) || Promise.reject(error))
          const { money, hold: state } = await explained(wallet, 'h')
          expect(state).toEqual(await hold.get())
          expect((await wallet.get())?.available).toBe(1_000 - money.spent - money.left)
        }),
        { numRuns: 15 },
      )
    })

    it('comes in pages, with the sums of all', async () => {
      const wallet = await path.wallet(1_000)
      const hold = await wallet.hold(500, { key: 'h', ttl: HOUR })
      for (let n = 1; n <= 6; n += 1) await hold.capture(n, { key: `${n}` })
      const whole = await explained(wallet, 'h')
      const first = await hold.explain({ limit: 3 })
      const second = await hold.explain({ limit: 4, after: first.steps.at(-1)?.entry.seq as number })
      expect([first.more, second.more, whole.more]).toEqual([true, false, false])
      expect([...first.steps, ...second.steps]).toEqual(whole.steps)
      expect(first.money).toEqual(whole.money)
      expect(first.text).toContain('… and more entries after these.')
    })

    it('is refused for what there never was', async () => {
      const wallet = await path.wallet(100)
      await wallet.debit(1, { key: 'debit' })
      expect(await refusal(wallet.holdRef('h').explain())).toMatchObject({ code: 'hold_not_found' })
      expect(await refusal(wallet.holdRef('debit').explain())).toMatchObject({ code: 'hold_not_found' })
      expect(await refusal(path.hf.wallet('nobody').holdRef('h').explain())).toMatchObject({ code: 'wallet_not_found' })
    })
  })
})
