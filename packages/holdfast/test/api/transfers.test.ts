import pg from 'pg'
import { describe, expect, it } from 'vitest'
import type { Wallet } from '../../src/index.js'
import { onBothPaths, Path, refusal, until } from './support/paths.js'

const MAX = Number.MAX_SAFE_INTEGER

const kinds = async (wallet: Wallet) => (await wallet.entries()).map(({ kind }) => kind)

describe('a transfer', () => {
  onBothPaths((path) => {
    it('moves money from one wallet to another, and writes each step down', async () => {
      const [from, to] = [await path.wallet(1_000), await path.wallet()]
      const transfer = await path.hf.transfer(from.id, to.id, 300, { key: 't', fee: 20, metadata: { order: 7 } })
      expect(transfer).toMatchObject({ amount: 300, fee: 20, replayed: false })
      expect(transfer.from).toMatchObject({ available: 680, reserved: 0, durability: 'ledger' })
      expect(transfer.to).toMatchObject({ available: 300, reserved: 0, durability: 'ledger' })
      expect(await to.entries()).toEqual([transfer.to.entry])
      const [, ...left] = await from.entries()
      expect(left.map(({ kind, key, amount, counter }) => ({ kind, key, amount, counter }))).toEqual([
        { kind: 'hold', key: '~transfer-hold:t', amount: 320, counter: 'transfers' },
        { kind: 'capture', key: '~transfer-fee:t', amount: 20, counter: 'revenue' },
        { kind: 'settle', key: '~transfer-settle:t', amount: 320, counter: 'transfers' },
      ])
      expect(left.at(-1)).toEqual(transfer.from.entry)
      for (const { entry } of [transfer.from, transfer.to]) expect(entry.metadata).toEqual({ order: 7 })
    })

    it('books the fee where it is told to, and leaves nothing in transit', async () => {
      const [from, to] = [await path.wallet(100, { currency: 'chf' }), await path.wallet(0, { currency: 'chf' })]
      await path.hf.transfer(from.id, to.id, 50, { key: 't', fee: 3, counter: 'payouts' })
      expect(await books(path, 'chf')).toEqual({ funding: '-100', payouts: '3', transfers: '0', wallets: '97' })
    })

    it('takes no fee where there is none', async () => {
      const [from, to] = [await path.wallet(100), await path.wallet()]
      expect(await path.hf.transfer(from.id, to.id, 100, { key: 't' })).toMatchObject({
        fee: 0,
        from: { available: 0 },
      })
      expect(await kinds(from)).toEqual(['credit', 'hold', 'settle'])
    })

    it('happens once, however often and wherever it is repeated', async () => {
      const [from, to] = [await path.wallet(100), await path.wallet()]
      const other = await path.another()
      const ask = (hf = path.hf) => hf.transfer(from.id, to.id, 30, { key: 't', fee: 1 })
      const [first, ...rest] = await Promise.all([ask(), ask(), ask(other), ask(other)])
      const later = await ask(other)
      await other.close()
      const all = [first, ...rest, later]
      expect(all.filter(({ replayed }) => !replayed)).toHaveLength(1)
      for (const { from, to } of all) {
        expect(from.entry).toEqual(later.from.entry)
        expect(to.entry).toEqual(later.to.entry)
      }
      expect(await from.get()).toMatchObject({ available: 69, reserved: 0 })
      expect(await to.get()).toMatchObject({ available: 30, seq: 1 })
      await noneOpen(path)
    })

    it('is a conflict with another destination, amount or fee, and with nothing else that has its key', async () => {
      const [from, to, third] = [await path.wallet(100), await path.wallet(), await path.wallet()]
      await path.hf.transfer(from.id, to.id, 30, { key: 't', fee: 1 })
      const before = await from.get()
      for (const call of [
        () => path.hf.transfer(from.id, third.id, 30, { key: 't', fee: 1 }),
        () => path.hf.transfer(from.id, to.id, 31, { key: 't', fee: 1 }),
        () => path.hf.transfer(from.id, to.id, 30, { key: 't', fee: 2 }),
        () => path.hf.transfer(from.id, to.id, 31, { key: 't' }),
      ]) {
        expect(await refusal(call())).toMatchObject({ code: 'idempotency_conflict' })
      }
      expect(await from.get()).toEqual(before)
      expect(await third.get()).toMatchObject({ seq: 0 })
      await from.debit(1, { key: 't' })
      // Another source may use it.
      await path.hf.transfer(to.id, third.id, 30, { key: 't', fee: 0 })
      await noneOpen(path)
    })

    it('is refused as a hold is, and may be tried again with the same key', async () => {
      const [from, to] = [await path.wallet(50), await path.wallet()]
      const ask = () => path.hf.transfer(from.id, to.id, 50, { key: 't', fee: 1 })
      expect(await refusal(ask())).toMatchObject({ code: 'insufficient_funds', available: 50, side: 'from' })
      await from.credit(1, { key: 'more' })
      await from.freeze({ key: 'freeze' })
      expect(await refusal(ask())).toMatchObject({ code: 'wallet_frozen', side: 'from' })
      expect(await kinds(from)).toEqual(['credit', 'credit', 'freeze'])
      expect(await to.get()).toMatchObject({ seq: 0 })
      await from.unfreeze({ key: 'unfreeze' })
      expect(await ask()).toMatchObject({ replayed: false, from: { available: 0 }, to: { available: 50 } })
    })

    it('arrives at a frozen wallet', async () => {
      const [from, to] = [await path.wallet(50), await path.wallet()]
      await to.freeze({ key: 'freeze' })
      expect(await path.hf.transfer(from.id, to.id, 50, { key: 't' })).toMatchObject({ to: { available: 50 } })
    })

    it('gives the money back where the destination is closed, and says so again', async () => {
      const [from, to] = [await path.wallet(50), await path.wallet()]
      await to.close({ key: 'close' })
      for (const _ of [1, 2]) {
        const error = await refusal(path.hf.transfer(from.id, to.id, 40, { key: 't', fee: 1 }))
        expect(error).toMatchObject({ code: 'wallet_closed', side: 'to', retryable: false })
      }
      expect(await from.get()).toMatchObject({ available: 50, reserved: 0 })
      expect(await kinds(from)).toEqual(['credit', 'hold', 'release'])
      await noneOpen(path)
    })

    it('gives the money back where it does not fit, and never lets it arrive later', async () => {
      const [from, to] = [await path.wallet(50), await path.wallet(MAX - 10)]
      await to.freeze({ key: 'freeze' })
      const ask = () => path.hf.transfer(from.id, to.id, 40, { key: 't' })
      const error = await refusal(ask())
      expect(error).toMatchObject({ code: 'invalid_amount', side: 'to', available: MAX - 10 })
      expect(await kinds(from)).toEqual(['credit', 'hold', 'release'])
      expect(await kinds(to)).toEqual(['credit', 'freeze', 'void'])
      expect((await to.entries()).at(-1)).toMatchObject({ amount: 0, availableDelta: 0, reservedDelta: 0 })
      await to.unfreeze({ key: 'unfreeze' })
      await to.debit(1_000, { key: 'room' })
      expect((await refusal(ask())).facts).toEqual(error.facts)
      expect(await from.get()).toMatchObject({ available: 50, reserved: 0 })
      expect(await to.get()).toMatchObject({ available: MAX - 1_010 })
      // With another key it is another transfer.
      await path.hf.transfer(from.id, to.id, 40, { key: 't2' })
      await noneOpen(path)
    })

    it('changes nothing where a wallet is missing or has another currency', async () => {
      const [from, to] = [await path.wallet(50), await path.wallet(0, { currency: 'eur' })]
      const before = await from.get()
      const ask = (a: string, b: string) => refusal(path.hf.transfer(a, b, 1, { key: 't' }))
      expect(await ask('nobody', to.id)).toMatchObject({ code: 'wallet_not_found', side: 'from' })
      expect(await ask(from.id, 'nobody')).toMatchObject({ code: 'wallet_not_found', side: 'to' })
      const error = await ask(from.id, to.id)
      expect(error).toMatchObject({ code: 'invalid_argument' })
      expect(error.message).toBe('to: expected a wallet in the currency of the first, usd, got one in eur')
      expect(await from.get()).toEqual(before)
      await noneOpen(path)
    })

    it('conserves what there is, whoever sends to whom at once', async () => {
      const wallets = await Promise.all(Array.from({ length: 5 }, () => path.wallet(100)))
      const pick = (n: number) => (wallets[n % wallets.length] as Wallet).id
      const asked = Array.from({ length: 60 }, (_, n) =>
        path.hf.transfer(pick(n), pick(n * 3 + 1 + (n % 2)), 1 + ((n * 13) % 60), { key: `t${n}` }).then(
          () => 'done',
          (error) => error.code,
        ),
      )
      const answers = await Promise.all(asked)
      expect(new Set(answers)).toEqual(new Set(['done', 'insufficient_funds', 'invalid_argument']))
      let sum = 0
      for (const wallet of wallets) {
        const state = await wallet.get()
        expect(state?.reserved).toBe(0)
        sum += state?.available ?? 0
      }
      expect(sum).toBe(500)
    })

    it('stays inside its tenant', async () => {
      const [from] = [await path.wallet(50)]
      const abroad = path.hf.forTenant('abroad')
      await abroad.wallet('theirs').open({ currency: 'usd' })
      expect(await refusal(path.hf.transfer(from.id, 'theirs', 1, { key: 't' }))).toMatchObject({
        code: 'wallet_not_found',
      })
      expect(await refusal(abroad.transfer(from.id, 'theirs', 1, { key: 't' }))).toMatchObject({ side: 'from' })
    })

    it('takes keys of any length and alphabet', async () => {
      const [from, to] = [await path.wallet(50), await path.wallet()]
      const key = `${'🙂'.repeat(200)}"\\{},' ü`
      await path.hf.transfer(from.id, to.id, 50, { key, fee: 0, metadata: '"\\' })
      const again = await path.hf.transfer(from.id, to.id, 50, { key, fee: 0 })
      expect(again).toMatchObject({ replayed: true, to: { entry: { metadata: '"\\' } } })
    })

    it('ends what its signal ends, and nothing before it', async () => {
      const [from, to] = [await path.wallet(50), await path.wallet()]
      const before = await from.get()
      const ask = (signal: AbortSignal) => path.hf.transfer(from.id, to.id, 5, { key: 't', signal })
      expect(await refusal(ask(AbortSignal.abort()))).toMatchObject({ code: 'aborted', retryable: true })
      expect(await from.get()).toEqual(before)
      const abort = new AbortController()
      const asked = refusal(ask(abort.signal))
      abort.abort()
      expect(await asked).toMatchObject({ code: 'aborted' })
      expect(await ask(new AbortController().signal)).toMatchObject({ to: { available: 5 } })
      expect(await from.get()).toMatchObject({ available: 45, reserved: 0 })
    })
  })
})

describe('the hold of a transfer', () => {
  onBothPaths((path) => {
    it('is spent, released and extended by nobody else', async () => {
      const wallet = await path.wallet(50)
      const hold = wallet.holdRef('~transfer-hold:t')
      for (const call of [
        () => hold.capture(1, { key: 'a' }),
        () => hold.settle(1, { key: 'a' }),
        () => hold.release({ key: 'a' }),
        () => hold.extend({ ttl: 5, key: 'a' }),
      ]) {
        const error = await refusal(call())
        expect(error).toMatchObject({ code: 'invalid_argument' })
        expect(error.message).toBe('hold id: expected one that does not begin with ~, got one that does')
      }
    })
  })
})

describe('a transfer where operations are acknowledged from memory', () => {
  it('is committed all the same', async () => {
    const path = new Path('Redis')
    await path.connect({ durability: 'memory' })
    const [from, to] = [await path.wallet(50), await path.wallet()]
    expect(await path.hf.transfer(from.id, to.id, 20, { key: 't' })).toMatchObject({
      from: { durability: 'ledger' },
      to: { durability: 'ledger' },
    })
    expect(await from.get()).toMatchObject({ available: 30, reserved: 0 })
    await path.close()
  })
})

async function query<T extends pg.QueryResultRow>(path: Path, sql: string, values: unknown[] = []): Promise<T[]> {
  const client = new pg.Client(path.databaseUrl)
  await client.connect()
  try {
    return (await client.query<T>(sql, values)).rows
  } finally {
    await client.end()
  }
}

async function books(path: Path, currency: string): Promise<Record<string, string>> {
  const sql = 'SELECT account, balance FROM holdfast.books WHERE currency = $1'
  const rows = await query<{ account: string; balance: string }>(path, sql, [currency])
  return Object.fromEntries(rows.map(({ account, balance }) => [account, balance]))
}

/** Nobody waits for an intent to be removed: it is, a moment later. */
async function noneOpen(path: Path): Promise<void> {
  await until(async () => (await query(path, 'SELECT FROM holdfast.transfers')).length === 0)
}
