import { describe, expect, it } from 'vitest'
import type { Wallet } from '../../src/index.js'
import { onBothPaths, passes, refusal } from './support/paths.js'

const HOUR = 3_600_000

onBothPaths((path) => {
  describe('open holds', () => {
    it('are listed in the order they were made in, as they stand', async () => {
      const wallet = await path.wallet(1_000)
      await wallet.hold(100, { key: 'z', ttl: HOUR, metadata: { call: 17 } })
      await wallet.hold(200, { key: 'a', ttl: HOUR })
      const third = await wallet.hold(300, { key: 'm', ttl: HOUR })
      await third.capture(50, { key: 'c' })
      await third.extend({ amount: 10, key: 'e' })
      await wallet.refund(5, 20, { key: 'r' })
      await wallet.holdRef('a').release({ key: 'x' })
      expect(await wallet.holds()).toEqual([
        {
          id: 'z',
          status: 'open',
          amount: 100,
          captured: 0,
          left: 100,
          refunded: 0,
          expiresAt: expect.any(Number),
          seq: 2,
          madeAt: expect.any(Number),
          metadata: { call: 17 },
        },
        {
          id: 'm',
          status: 'open',
          amount: 310,
          captured: 50,
          left: 260,
          refunded: 20,
          expiresAt: third.expiresAt,
          seq: 4,
          madeAt: third.receipt.entry.at,
        },
      ])
    })

    it('are none in a wallet that has none, or that nobody opened', async () => {
      expect(await (await path.wallet(1)).holds()).toEqual([])
      expect(await path.hf.wallet('nobody').holds()).toEqual([])
      expect(await path.hf.wallet('nobody').holds({ pending: true })).toEqual([])
    })

    it('come in pages, each open hold on one of them, whatever happens in between', async () => {
      const wallet = await path.wallet(100)
      for (let n = 1; n <= 7; n += 1) await wallet.hold(1, { key: `h${n}`, ttl: HOUR })
      const first = await wallet.holds({ limit: 3 })
      expect(first.map(({ id }) => id)).toEqual(['h1', 'h2', 'h3'])
      await wallet.holdRef('h2').release({ key: 'x' })
      await wallet.holdRef('h5').release({ key: 'y' })
      await wallet.hold(1, { key: 'h0', ttl: HOUR })
      const second = await wallet.holds({ after: first.at(-1)?.seq as number, limit: 3 })
      expect(second.map(({ id }) => id)).toEqual(['h4', 'h6', 'h7'])
      const third = await wallet.holds({ after: second.at(-1)?.seq as number, limit: 3 })
      expect(third.map(({ id }) => id)).toEqual(['h0'])
    })
  })

  describe('one hold', () => {
    it('is read while it is open, and by whom it was closed', async () => {
      const wallet = await path.wallet(1_000)
      const settled = await wallet.hold(100, { key: 'settled', ttl: HOUR, metadata: 'mine' })
      expect(await settled.get()).toMatchObject({ status: 'open', left: 100, seq: 2, metadata: 'mine' })
      await settled.capture(30, { key: 'c' })
      expect(await wallet.holdRef('settled').get()).toMatchObject({ status: 'open', captured: 30, left: 70 })
      const { entry } = await settled.settle(60, { key: 's' })
      expect(await settled.get()).toEqual({
        id: 'settled',
        status: 'settled',
        amount: 100,
        captured: 60,
        left: 0,
        refunded: 0,
        expiresAt: settled.expiresAt,
        seq: 2,
        madeAt: settled.receipt.entry.at,
        closedAt: entry.at,
        metadata: 'mine',
      })
      await wallet.refund(entry.seq, 25, { key: 'r' })
      expect(await settled.get()).toMatchObject({ status: 'settled', captured: 60, refunded: 25, closedAt: entry.at })

      const released = await wallet.hold(40, { key: 'released', ttl: HOUR })
      await released.release({ key: 'x' })
      expect(await released.get()).toMatchObject({ status: 'released', amount: 40, captured: 0, left: 0 })

      const expired = await wallet.hold(50, { key: 'expired', ttl: 3_000 })
      await expired.capture(5, { key: 'c2' })
      await passes(expired.expiresAt)
      await wallet.credit(1, { key: 'touch' })
      expect(await expired.get()).toMatchObject({ status: 'expired', amount: 50, captured: 5, left: 0 })
    })

    it('is null where there was none: of another key, another wallet, no wallet', async () => {
      const wallet = await path.wallet(100)
      await wallet.hold(1, { key: 'h', ttl: HOUR })
      await wallet.debit(1, { key: 'debit' })
      expect(await wallet.holdRef('other').get()).toBeNull()
      expect(await wallet.holdRef('debit').get()).toBeNull()
      expect(await (await path.wallet()).holdRef('h').get()).toBeNull()
      expect(await path.hf.wallet('nobody').holdRef('h').get()).toBeNull()
    })
  })

  describe('a balance of the past', () => {
    it('is told for every seq, from nothing at all to the present', async () => {
      const wallet = await path.wallet()
      const [genesis, opened] = [(await wallet.get())?.head, (await wallet.get())?.openedAt]
      await wallet.credit(100, { key: 'a' })
      await wallet.hold(30, { key: 'h', ttl: HOUR })
      await wallet.holdRef('h').settle(10, { key: 's' })
      const entries = await wallet.entries()
      expect(await wallet.at({ seq: 0 })).toEqual({
        id: wallet.id,
        currency: 'usd',
        seq: 0,
        at: opened,
        available: 0,
        reserved: 0,
        head: genesis,
        complete: true,
      })
      for (const { seq, at, available, reserved, hash } of entries) {
        expect(await wallet.at({ seq })).toMatchObject({ seq, at, available, reserved, head: hash, complete: true })
      }
      expect(await refusal(wallet.at({ seq: 4 }))).toMatchObject({ code: 'entry_not_found', status: 404, lastSeq: 3 })
      expect(await path.hf.wallet('nobody').at({ seq: 0 })).toBeNull()
    })

    it('is told for every time: what the last entry by then left', async () => {
      const wallet = await path.wallet()
      for (let n = 1; n <= 12; n += 1) {
        await wallet.credit(n, { key: `${n}` })
        if (n % 3 === 0) await new Promise((resolve) => setTimeout(resolve, 5))
      }
      const entries = await wallet.entries()
      const last = entries.at(-1)?.at as number
      // Not every moment in between: there may be many, where the machine stood still.
      for (const time of new Set(entries.flatMap(({ at }) => [at - 2, at - 1, at, at + 1, at + 2]))) {
        const expected = entries.findLast(({ at }) => at <= time)
        const read = await wallet.at({ time })
        expect(read).toMatchObject({
          seq: expected?.seq ?? 0,
          available: expected?.available ?? 0,
          complete: time < last,
        })
      }
      for (const time of [new Date(0), new Date('1960-01-01'), -8_640_000_000_000_000]) {
        expect(await wallet.at({ time })).toMatchObject({ seq: 0, available: 0, complete: true })
      }
      expect(await wallet.at({ time: Date.now() + HOUR })).toMatchObject({ seq: 12, available: 78, complete: false })
      expect(await path.hf.wallet('nobody').at({ time: 0 })).toBeNull()
    })

    it('is told of a wallet without entries', async () => {
      const wallet = await path.wallet()
      expect(await wallet.at({ time: Date.now() })).toMatchObject({ seq: 0, available: 0, complete: false })
    })
  })

  describe('entries', () => {
    it('come in pages by seq, the same for good', async () => {
      const wallet = await path.wallet()
      for (let n = 1; n <= 5; n += 1) await wallet.credit(n, { key: `${n}` })
      const first = await wallet.entries({ limit: 2 })
      await wallet.credit(6, { key: '6' })
      const rest = await wallet.entries({ after: 2 })
      expect([...first, ...rest].map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6])
      expect(await wallet.entries({ limit: 2 })).toEqual(first)
      for (const [index, entry] of rest.entries()) expect(entry.prev).toBe([...first, ...rest][index + 1]?.hash)
      expect(await wallet.entries({ after: 6 })).toEqual([])
    })
  })

  describe('reading', () => {
    const READS: Record<string, (wallet: Wallet, options: object) => Promise<unknown>> = {
      open: (wallet, options) => wallet.open({ currency: 'usd', ...options }),
      get: (wallet, options) => wallet.get(options),
      entries: (wallet, options) => wallet.entries(options),
      holds: (wallet, options) => wallet.holds(options),
      at: (wallet, options) => wallet.at({ seq: 0, ...options }),
      'hold.get': (wallet, options) => wallet.holdRef('h').get(options),
      'hold.explain': (wallet, options) => wallet.holdRef('h').explain(options),
    }

    it.each(Object.entries(READS))('by %s begins not even for a signal that has fired', async (_, read) => {
      const wallet = await path.wallet(10)
      await wallet.hold(1, { key: 'h', ttl: HOUR })
      expect(await refusal(read(wallet, { signal: AbortSignal.abort() }))).toMatchObject({ code: 'aborted' })
      await read(wallet, { signal: new AbortController().signal, timeout: 5_000 })
    })
  })
})
