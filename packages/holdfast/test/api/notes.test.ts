import { describe, expect, it } from 'vitest'
import { onBothPaths, refusal } from './support/paths.js'

onBothPaths((path) => {
  describe('a note', () => {
    it('moves nothing, and is in the journal with its metadata', async () => {
      const wallet = await path.wallet(100)
      const before = await wallet.get()
      const receipt = await wallet.note({ key: 'note', metadata: { ticket: 4711 } })
      expect(receipt).toMatchObject({ available: 100, reserved: 0, replayed: false })
      expect(receipt.entry).toMatchObject({ kind: 'void', key: 'note', seq: 2, amount: 0, availableDelta: 0 })
      expect(await wallet.entries({ after: 1 })).toEqual([receipt.entry])
      expect(receipt.entry).toMatchObject({ metadata: { ticket: 4711 }, prev: before?.head })
      expect((await wallet.get())?.available).toBe(100)
    })

    it('is made once, and uses its key up', async () => {
      const wallet = await path.wallet(100)
      const first = await wallet.note({ key: 'k', metadata: 1 })
      expect(await wallet.note({ key: 'k', metadata: 2 })).toEqual({ ...first, replayed: true })
      expect(await refusal(wallet.debit(5, { key: 'k' }))).toMatchObject({ code: 'idempotency_conflict' })
      await wallet.debit(5, { key: 'd' })
      expect(await refusal(wallet.note({ key: 'd' }))).toMatchObject({ code: 'idempotency_conflict' })
      expect((await wallet.get())?.seq).toBe(3)
    })

    it('can be made in a frozen wallet, not in a closed one', async () => {
      const wallet = await path.wallet()
      await wallet.freeze({ key: 'f' })
      await wallet.note({ key: 'n' })
      expect((await wallet.get())?.status).toBe('frozen')
      await wallet.close({ key: 'c' })
      expect(await refusal(wallet.note({ key: 'm' }))).toMatchObject({ code: 'wallet_closed' })
      expect(await refusal(path.hf.wallet('nobody').note({ key: 'm' }))).toMatchObject({ code: 'wallet_not_found' })
    })
  })

  describe('the entry of a key', () => {
    it('is the one that the journal has; null where there is none', async () => {
      const wallet = await path.wallet(100)
      const { entry } = await wallet.debit(5, { key: 'd', metadata: { a: 'é' } })
      expect(await wallet.entry('d')).toEqual(entry)
      const hold = await wallet.hold(5, { key: 'h', ttl: 60_000 })
      await hold.release({ key: 'r' })
      expect(await wallet.entry('r')).toMatchObject({ kind: 'release', hold: 'h' })
      expect(await wallet.entry('nothing')).toBeNull()
      expect(await path.hf.wallet('nobody').entry('d')).toBeNull()
      expect(await path.hf.forTenant('other').wallet(wallet.id).entry('d')).toBeNull()
    })

    it('is asked for by a key', async () => {
      const wallet = await path.wallet()
      for (const bad of ['', 5, 'x'.repeat(256), 'a\0', undefined] as never[]) {
        expect(await refusal(wallet.entry(bad))).toMatchObject({ code: 'invalid_argument' })
      }
      const signal = AbortSignal.abort()
      expect(await refusal(wallet.entry('d', { signal }))).toMatchObject({ code: 'aborted' })
    })
  })
})
