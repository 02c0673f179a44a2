import { Redis } from 'ioredis'
import { describe, expect, it } from 'vitest'
import type { Holdfast, Wallet } from '../../src/index.js'
import { onBothPaths, type Path, passes, refusal, until } from './support/paths.js'

const HOUR = 3_600_000
const TTL = 40
/** Time for what has to come before it is over. */
const AMPLE = 3_000

const kinds = async (wallet: Wallet) => (await wallet.entries()).map(({ kind }) => kind)

describe('a hold whose time is over', () => {
  onBothPaths((path) => {
    it('expires when the wallet is touched, as an entry of its own before the command', async () => {
      const wallet = await path.wallet(100)
      const hold = await wallet.hold(60, { key: 'call', ttl: AMPLE })
      await hold.capture(10, { key: 'a' })
      await passes(hold.expiresAt)
      // All of it is needed: without the expiry it would not be there.
      const debit = await wallet.debit(90, { key: 'b' })
      expect(debit).toMatchObject({ available: 0, reserved: 0, entry: { seq: 5 } })
      const expiry = (await wallet.entries({ after: 3 }))[0]
      expect(expiry).toMatchObject({
        seq: 4,
        kind: 'expire',
        key: '~expire:call',
        hold: 'call',
        amount: 50,
        availableDelta: 50,
        reservedDelta: -50,
      })
      expect(expiry?.at).toBeGreaterThanOrEqual(hold.expiresAt)
    })

    it('tells expired from closed and from never', async () => {
      const wallet = await path.wallet(100)
      const closed = await wallet.hold(5, { key: 'closed', ttl: HOUR })
      await closed.release({ key: 'r' })
      const hold = await wallet.hold(60, { key: 'call', ttl: TTL })
      await passes(hold.expiresAt)
      for (const call of [
        () => hold.capture(1, { key: 'a' }),
        () => hold.settle(1, { key: 'a' }),
        () => hold.extend({ ttl: HOUR, key: 'a' }),
        () => hold.release({ key: 'a' }),
      ]) {
        expect(await refusal(call())).toMatchObject({ code: 'hold_expired', status: 410, retryable: false })
      }
      expect(await refusal(closed.settle(1, { key: 'a' }))).toMatchObject({ code: 'hold_closed' })
      expect(await refusal(wallet.holdRef('never').settle(1, { key: 'a' }))).toMatchObject({ code: 'hold_not_found' })
      expect(await kinds(wallet)).toEqual(['credit', 'hold', 'release', 'hold', 'expire'])
      expect(await wallet.get()).toMatchObject({ available: 100, reserved: 0 })
    })

    it('lives on when it was extended in time', async () => {
      const wallet = await path.wallet(100)
      const hold = await wallet.hold(60, { key: 'call', ttl: AMPLE })
      await hold.extend({ ttl: HOUR, key: 'longer' })
      await passes(hold.expiresAt)
      expect(await hold.capture(60, { key: 'a' })).toMatchObject({ hold: { left: 0 } })
    })

    it('expires once, whoever comes at the same time', async () => {
      const wallet = await path.wallet(100)
      const hold = await wallet.hold(60, { key: 'call', ttl: TTL })
      await passes(hold.expiresAt)
      const other = await path.another()
      const race = await Promise.allSettled([
        hold.settle(60, { key: 'a' }),
        other.wallet(wallet.id).holdRef('call').settle(60, { key: 'b' }),
        wallet.credit(1, { key: 'c' }),
        other.wallet(wallet.id).credit(1, { key: 'd' }),
      ])
      await other.close()
      expect(race.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled', 'fulfilled'])
      expect((await kinds(wallet)).filter((kind) => kind === 'expire')).toHaveLength(1)
      expect(await wallet.get()).toMatchObject({ available: 102, reserved: 0 })
    })

    it('still answers the key that made it', async () => {
      const wallet = await path.wallet(100)
      const hold = await wallet.hold(60, { key: 'call', ttl: TTL })
      await passes(hold.expiresAt)
      const again = await wallet.hold(60, { key: 'call', ttl: TTL })
      expect(again.receipt).toEqual({ ...hold.receipt, replayed: true })
    })

    it('gives way to whatever number of others is due with it', async () => {
      const wallet = await path.wallet(300)
      const holds = await Promise.all(Array.from({ length: 150 }, (_, i) => wallet.hold(2, { key: `h${i}`, ttl: 300 })))
      await passes(Math.max(...holds.map(({ expiresAt }) => expiresAt)))
      expect(await wallet.debit(300, { key: 'all' })).toMatchObject({ available: 0, reserved: 0 })
      expect((await wallet.get())?.seq).toBe(1 + 150 + 150 + 1)
    })
  })
})

describe('a hold that nobody touches', () => {
  const swept = { sweepEveryMs: 20, dueGraceMs: 50 }

  onBothPaths((path) => {
    it('is expired by a sweeper', async () => {
      const wallet = await path.wallet(100)
      const hold = await wallet.hold(60, { key: 'call', ttl: TTL })
      await untilExpired(await path.another({ engine: swept }), wallet.id)
      expect(await kinds(wallet)).toEqual(['credit', 'hold', 'expire'])
      expect((await wallet.entries()).at(-1)?.at).toBeGreaterThanOrEqual(hold.expiresAt)
    })

    it('is expired once by several sweepers', async () => {
      const wallets = await Promise.all(Array.from({ length: 10 }, () => path.wallet(100)))
      for (const wallet of wallets) await wallet.hold(60, { key: 'call', ttl: TTL })
      const sweepers = await Promise.all([1, 2, 3].map(() => path.another({ engine: swept })))
      await until(async () =>
        (await Promise.all(wallets.map((wallet) => wallet.get()))).every((w) => w?.reserved === 0),
      )
      await Promise.all(sweepers.map((hf) => hf.close()))
      for (const wallet of wallets) expect(await kinds(wallet)).toEqual(['credit', 'hold', 'expire'])
    })

    it('is found behind closed wallets whose holds would be due', async () => {
      const hf = await path.another({ engine: { ...swept, claimMax: 2 } })
      for (let i = 0; i < 3; i += 1) {
        const closed = await path.wallet(10)
        const hold = await closed.hold(10, { key: 'call', ttl: AMPLE })
        await hold.settle(10, { key: 'end' })
        await closed.close({ key: 'close' })
      }
      const wallet = await path.wallet(100)
      await wallet.hold(60, { key: 'call', ttl: AMPLE })
      await forget(path)
      await untilExpired(hf, wallet.id)
    })
  })
})

describe('a hold of a wallet that is not in Redis', () => {
  onBothPaths((path) => {
    it.each(['without a touch', 'on touch'])('expires %s', async (how) => {
      const wallet = await path.wallet(100)
      const hold = await wallet.hold(60, { key: 'call', ttl: TTL })
      await forget(path)
      await passes(hold.expiresAt)
      if (how === 'on touch') {
        expect(await refusal(hold.capture(1, { key: 'a' }))).toMatchObject({ code: 'hold_expired' })
      } else {
        await untilExpired(await path.another({ engine: { sweepEveryMs: 20, dueGraceMs: 0 } }), wallet.id)
      }
      expect(await wallet.get()).toMatchObject({ available: 100, reserved: 0 })
    })
  })
})

async function untilExpired(hf: Holdfast, id: string): Promise<void> {
  await until(async () => (await hf.wallet(id).get())?.reserved === 0)
  await hf.close()
}

/** Everything that Redis knows is gone, the agenda included. */
async function forget(path: Path): Promise<void> {
  if (path.name === 'Postgres') return
  const redis = new Redis(path.redisUrl)
  await redis.flushdb()
  redis.disconnect()
}
