import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ErrorCode, Wallet } from '../../src/index.js'
import { Dump } from './support/dump.js'
import { onBothPaths, passes, refusal } from './support/paths.js'

const MAX = Number.MAX_SAFE_INTEGER
const TTL_MAX = 400 * 24 * 60 * 60 * 1_000

const key = 'fresh'
const ttl = 60_000
const held = (wallet: Wallet) => wallet.holdRef('hold')

describe('a command that the state refuses', () => {
  onBothPaths((path) => {
    let dump: Dump
    beforeAll(() => {
      dump = new Dump(path)
    })
    afterAll(() => dump.close())

    it.each<[string, ErrorCode, (wallet: Wallet) => Promise<unknown>]>([
      ['debit of more than there is', 'insufficient_funds', (wallet) => wallet.debit(MAX, { key })],
      ['hold of more than there is', 'insufficient_funds', (wallet) => wallet.hold(MAX, { key, ttl })],
      ['credit above what is exact', 'invalid_amount', (wallet) => wallet.credit(MAX - 89, { key })],
      ['capture of more than is left', 'hold_exceeded', (wallet) => held(wallet).capture(51, { key })],
      [
        'capture beyond that overflows',
        'insufficient_funds',
        (wallet) => held(wallet).capture(MAX, { key, beyond: 'available' }),
      ],
      ['settle of more than is left', 'hold_exceeded', (wallet) => held(wallet).settle(MAX, { key })],
      ['extend by more than there is', 'insufficient_funds', (wallet) => held(wallet).extend({ amount: MAX, key })],
      ['refund above the charge', 'refund_exceeded', (wallet) => wallet.refund(3, 11, { key })],
      ['refund of nothing that was', 'entry_not_found', (wallet) => wallet.refund(MAX, 1, { key })],
      ['a hold that is not there', 'hold_not_found', (wallet) => wallet.holdRef('nope').capture(1, { key })],
      ['a hold that is closed', 'hold_closed', (wallet) => wallet.holdRef('closed').release({ key })],
      ['close with money in it', 'wallet_not_empty', (wallet) => wallet.close({ key })],
      ['another use of a key', 'idempotency_conflict', (wallet) => wallet.credit(5, { key: 'debit' })],
      ['another currency', 'wallet_exists', (wallet) => wallet.open({ currency: 'eur' })],
      ['another limit', 'wallet_exists', (wallet) => wallet.open({ currency: 'usd', creditLimit: 1 })],
    ])('changes nothing: %s', async (_, code, call) => {
      const wallet = await path.wallet(100)
      await wallet.hold(50, { key: 'hold', ttl: 3_600_000 })
      await wallet.debit(10, { key: 'debit' })
      await wallet.hold(1, { key: 'closed', ttl: 3_600_000 })
      await wallet.holdRef('closed').release({ key: 'released' })
      const before = await dump.take(false)
      for (let time = 0; time < 2; time += 1) expect(await refusal(call(wallet))).toMatchObject({ code })
      expect(await dump.take(false)).toEqual(before)
    })

    /** What is refused, and what led there: the last of it is what `call` is refused for. */
    it.each<[string, ErrorCode, (wallet: Wallet) => Promise<unknown>, (wallet: Wallet) => Promise<unknown>]>([
      [
        'a hold that has run out',
        'hold_expired',
        async (wallet) => {
          const { expiresAt } = await wallet.hold(5, { key: 'brief', ttl: 1 })
          await passes(expiresAt)
          // Files the expiry: a refusal may do that, and nothing else.
          await wallet.credit(1, { key: 'later' })
        },
        (wallet) => wallet.holdRef('brief').settle(1, { key }),
      ],
      [
        'a frozen wallet',
        'wallet_frozen',
        (wallet) => wallet.freeze({ key: 'freeze' }),
        (wallet) => wallet.debit(1, { key }),
      ],
      [
        'a closed wallet',
        'wallet_closed',
        async (wallet) => {
          await wallet.debit(100, { key: 'all' })
          await wallet.close({ key: 'close' })
        },
        (wallet) => wallet.credit(1, { key }),
      ],
      [
        'a limit below what is used of it',
        'insufficient_funds',
        async (wallet) => {
          await wallet.setCreditLimit(50, { key: 'limit' })
          await wallet.debit(150, { key: 'used' })
        },
        (wallet) => wallet.setCreditLimit(49, { key }),
      ],
      [
        'a settle that gives back more than is exact',
        'invalid_amount',
        async (wallet) => {
          const hold = await wallet.hold(100, { key: 'hold', ttl: 3_600_000 })
          await hold.capture(100, { key: 'captured' })
          await wallet.credit(MAX, { key: 'in' })
        },
        (wallet) => held(wallet).settle(0, { key }),
      ],
    ])('changes nothing: %s', async (_, code, lead, call) => {
      const wallet = await path.wallet(100)
      await lead(wallet)
      const before = await dump.take(false)
      for (let time = 0; time < 2; time += 1) expect(await refusal(call(wallet))).toMatchObject({ code })
      expect(await dump.take(false)).toEqual(before)
    })

    it('changes nothing: a wallet that is not there', async () => {
      const wallet = path.hf.wallet('nobody')
      const before = await dump.take(false)
      for (const call of [
        () => wallet.credit(1, { key }),
        () => wallet.hold(1, { key, ttl }),
        () => held(wallet).settle(1, { key }),
        () => wallet.refund(1, 1, { key }),
      ]) {
        expect(await refusal(call())).toMatchObject({ code: 'wallet_not_found', status: 404 })
      }
      expect(await dump.take(false)).toEqual(before)
    })

    it('tells of a hold that is made right behind it that there is none, not that it is closed', async () => {
      const wallet = await path.wallet(0)
      const hold = wallet.holdRef('h')
      // Decided together: the capture is refused because of what it found, and by the time that is confirmed the hold is in the journal.
      const [, refused, made] = await Promise.all([
        wallet.credit(100, { key: 'in' }),
        refusal(hold.capture(1, { key })),
        wallet.hold(10, { key: 'h', ttl }),
      ])
      expect(refused).toMatchObject({ code: 'hold_not_found' })
      expect(made).toMatchObject({ left: 10 })
      expect(await hold.capture(1, { key })).toMatchObject({ available: 90, reserved: 9 })
    })

    it('takes what is just within the bounds', async () => {
      const most = '🙂'.repeat(255)
      const wallet = path.hf.wallet(most)
      await wallet.open({ currency: most, creditLimit: MAX, metadata: 'x'.repeat(4_094) })
      const hold = await wallet.hold(MAX, { key: most, ttl: TTL_MAX, counter: most, metadata: 'é'.repeat(2_047) })
      expect(hold).toMatchObject({ id: most, amount: MAX, expiresAt: hold.receipt.entry.at + TTL_MAX })
      expect(await hold.settle(MAX, { key: ' ' })).toMatchObject({ available: -MAX, reserved: 0 })
      const last = await wallet.hold(1, { key: 'x', ttl: 1 }).catch((error) => error)
      expect(last).toMatchObject({ code: 'insufficient_funds' })
      const [entry] = await wallet.entries()
      expect(entry).toEqual(hold.receipt.entry)
    })

    it('takes a balance to the last unit and not further', async () => {
      const wallet = await path.wallet(MAX)
      const before = await dump.take(false)
      expect(await refusal(wallet.credit(1, { key }))).toMatchObject({ code: 'invalid_amount', available: MAX })
      expect(await dump.take(false)).toEqual(before)
      await wallet.debit(MAX, { key: 'all' })
      expect(await wallet.get()).toMatchObject({ available: 0 })
    })

    it('takes a limit to the last unit and not further', async () => {
      const wallet = await path.wallet(0, { creditLimit: MAX })
      await wallet.debit(MAX, { key: 'all' })
      expect(await refusal(wallet.debit(1, { key }))).toMatchObject({ code: 'insufficient_funds', available: -MAX })
      expect(await wallet.credit(MAX, { key })).toMatchObject({ available: 0 })
    })
  })
})
