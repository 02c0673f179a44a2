import { expect, it } from 'vitest'
import type { Holdfast, Purchase, Sale, SaleOptions, Wallet } from '../../src/index.js'
import { onBothPaths, type Path, passes, refusal } from '../api/support/paths.js'

const HOUR = 3_600_000
const ITEMS = [{ id: 'poster', quantity: 5 }, { id: 'guitar' }, { id: 'ticket', quantity: 2 }]

/** A sale of its own, and a way to fill a checkout of it. */
async function newSale(path: Path, options: Partial<SaleOptions> = {}): Promise<{ sale: Sale; fill: Fill }> {
  const sale = path.hf.sale(path.key())
  const now = Date.now()
  await sale.open({ items: ITEMS, perUser: 10, startsAt: now - 1_000, endsAt: now + HOUR, ...options })
  const fill: Fill = async (user, ...items) => (await sale.checkout({ user, items, key: path.key() })).code
  return { sale, fill }
}
type Fill = (user: string, ...items: { id: string; quantity?: number }[]) => Promise<string>

async function untouched(wallet: Wallet, available: number): Promise<void> {
  expect(await wallet.get()).toMatchObject({ available, reserved: 0 })
  expect(await wallet.holds()).toEqual([])
}

onBothPaths((path) => {
  it('captures the price of what is bought, and says who paid how much', async () => {
    const wallet = await path.wallet(1_000)
    const { sale, fill } = await newSale(path)
    const code = await fill('ann', { id: 'poster', quantity: 3 }, { id: 'guitar' })
    const bought = await sale.purchase(code, { pay: { wallet: wallet.id, price: { poster: 100, guitar: 250 } } })
    expect(bought).toMatchObject({ replayed: false, items: [{ id: 'poster', quantity: 3 }, { id: 'guitar' }] })
    expect(bought.paid).toMatchObject({ wallet: wallet.id, amount: 550 })
    await untouched(wallet, 450)
    expect(await sale.status()).toMatchObject({ stock: 4, reserved: 0, sold: 4 })
    expect((await path.hf.audit()).findings).toEqual([])
  })

  it('gives the same answer again, whoever asks and with whatever: nobody pays twice', async () => {
    const [wallet, other] = [await path.wallet(100), await path.wallet(100)]
    const { sale, fill } = await newSale(path)
    const code = await fill('ann', { id: 'guitar' })
    const first = await sale.purchase(code, { pay: { wallet: wallet.id, price: 100 } })
    const again = { ...first, replayed: true }
    const { items, at: closedAt } = first
    expect(await path.hf.checkoutRef(code).get()).toMatchObject({ status: 'purchased', items, closedAt })
    // The wallet is empty now, and that is no reason to refuse what it has bought.
    expect(await sale.purchase(code, { pay: { wallet: wallet.id, price: 100 } })).toEqual(again)
    expect(await sale.purchase(code, { pay: { wallet: wallet.id, price: 60 } })).toEqual(again)
    expect(await sale.purchase(code, { take: 'left', pay: { wallet: other.id, price: 100 } })).toEqual(again)
    expect(await sale.purchase(code)).toEqual(again)
    await untouched(wallet, 0)
    await untouched(other, 100)
    await expect(sale.cancel(code)).rejects.toMatchObject({ code: 'checkout_closed' })
  })

  it('takes nothing for what was bought without a wallet', async () => {
    const wallet = await path.wallet(100)
    const { sale, fill } = await newSale(path)
    const code = await fill('ann', { id: 'guitar' })
    const first = await sale.purchase(code)
    expect(first.paid).toBeNull()
    expect(await sale.purchase(code, { pay: { wallet: wallet.id, price: 100 } })).toEqual({ ...first, replayed: true })
    await untouched(wallet, 100)
  })

  it('leaves the checkout as it was where the wallet refuses', async () => {
    const wallet = await path.wallet(99)
    const { sale, fill } = await newSale(path)
    const code = await fill('ann', { id: 'guitar' })
    const buy = (id: string) => refusal(sale.purchase(code, { pay: { wallet: id, price: 100 } }))
    expect(await buy(wallet.id)).toMatchObject({ code: 'insufficient_funds', available: 99, side: 'wallet' })
    await wallet.credit(1, { key: path.key() })
    await wallet.freeze({ key: path.key() })
    expect(await buy(wallet.id)).toMatchObject({ code: 'wallet_frozen', side: 'wallet' })
    await wallet.unfreeze({ key: path.key() })
    const closed = await path.wallet()
    await closed.close({ key: path.key() })
    expect(await buy(closed.id)).toMatchObject({ code: 'wallet_closed', side: 'wallet' })
    expect(await buy('nobody')).toMatchObject({ code: 'wallet_not_found', side: 'wallet' })
    await untouched(wallet, 100)
    expect(await sale.status()).toMatchObject({ reserved: 1, sold: 0 })
    expect(await sale.purchase(code, { pay: { wallet: wallet.id, price: 100 } })).toMatchObject({ replayed: false })
    await untouched(wallet, 0)
  })

  it('gives the money back where the checkout is over', async () => {
    const wallet = await path.wallet(100)
    const { sale, fill } = await newSale(path)
    const cancelled = await fill('ann', { id: 'guitar' })
    await sale.cancel(cancelled)
    const short = await newSale(path, { checkoutTtl: 150 })
    const late = await short.fill('bob', { id: 'guitar' })
    await passes(Date.now() + 150)
    const buy = (at: Sale, code: string) => refusal(at.purchase(code, { pay: { wallet: wallet.id, price: 100 } }))
    expect(await buy(sale, cancelled)).toMatchObject({ code: 'checkout_closed' })
    expect(await buy(short.sale, late)).toMatchObject({ code: 'checkout_expired' })
    expect(await buy(short.sale, late)).toMatchObject({ code: 'checkout_expired' })
    await untouched(wallet, 100)
  })

  it('where the purchase decides: nothing for nothing, and only for what was left', async () => {
    const wallet = await path.wallet(1_000)
    const { sale, fill } = await newSale(path, { reserve: 'purchase' })
    const price = { poster: 100, guitar: 250, ticket: 30 }
    const code = await fill('ann', { id: 'guitar' }, { id: 'poster', quantity: 2 }, { id: 'ticket', quantity: 2 })
    await sale.purchase(await fill('bob', { id: 'guitar' }))
    const refused = await refusal(sale.purchase(code, { pay: { wallet: wallet.id, price } }))
    expect(refused).toMatchObject({ code: 'sold_out', item: 'guitar', left: 0 })
    await untouched(wallet, 1_000)
    const bought = await sale.purchase(code, { take: 'left', pay: { wallet: wallet.id, price } })
    expect(bought).toMatchObject({
      items: [
        { id: 'poster', quantity: 2 },
        { id: 'ticket', quantity: 2 },
      ],
    })
    expect(bought.paid).toMatchObject({ amount: 260 })
    await untouched(wallet, 740)
    expect(await sale.status()).toMatchObject({ stock: 3, sold: 5 })
  })

  it('is paid once, by one of two wallets that want the same at once; the other has its money back', async () => {
    const other = await path.another()
    try {
      for (let round = 0; round < 3; round += 1) {
        const wallets = [await path.wallet(100), await path.wallet(100)]
        const { sale, fill } = await newSale(path)
        const code = await fill('ann', { id: 'guitar' })
        const buy = (hf: Holdfast, { id }: Wallet) =>
          hf.sale(sale.id).purchase(code, { pay: { wallet: id, price: 60 } })
        const answers = await Promise.all(wallets.map((wallet, n) => buy(n === 0 ? path.hf : other, wallet)))
        const [one, two] = answers.map(({ replayed: _, ...rest }) => rest) as [Purchase, Purchase]
        expect(one).toEqual(two)
        expect(answers.filter(({ replayed }) => !replayed)).toHaveLength(1)
        for (const wallet of wallets) await untouched(wallet, wallet.id === one.paid?.wallet ? 40 : 100)
      }
    } finally {
      await other.close()
    }
  })

  it('is one payment, when the same is asked for many times at once', async () => {
    const wallet = await path.wallet(100)
    const { sale, fill } = await newSale(path)
    const code = await fill('ann', { id: 'guitar' })
    const asked = Array.from({ length: 8 }, () => sale.purchase(code, { pay: { wallet: wallet.id, price: 100 } }))
    for (const { paid } of await Promise.all(asked)) expect(paid?.amount).toBe(100)
    await untouched(wallet, 0)
    expect((await wallet.entries()).filter(({ kind }) => kind === 'hold')).toHaveLength(1)
  })

  it('pays for what comes into the checkout meanwhile, or it is not bought', async () => {
    const wallet = await path.wallet(10_000)
    const { sale, fill } = await newSale(path, {
      items: [
        { id: 'a', quantity: 99 },
        { id: 'b', quantity: 99 },
      ],
    })
    let paid = 0
    for (let round = 0; round < 3; round += 1) {
      const user = `user-${round}`
      const code = await fill(user, { id: 'a', quantity: 2 })
      const [bought] = await Promise.all([
        sale.purchase(code, { pay: { wallet: wallet.id, price: { a: 10, b: 100 } } }),
        fill(user, { id: 'b' }),
      ])
      const price = bought.items.reduce((sum, { id, quantity }) => sum + quantity * (id === 'a' ? 10 : 100), 0)
      expect(bought.paid?.amount).toBe(price)
      paid += price
    }
    await untouched(wallet, 10_000 - paid)
  })

  it('shows in the statement of the wallet, and explains itself', async () => {
    const wallet = await path.wallet(100)
    const { sale, fill } = await newSale(path, { reserve: 'purchase' })
    const code = await fill('ann', { id: 'guitar' }, { id: 'poster' })
    await sale.purchase(await fill('bob', { id: 'guitar' }))
    const pay = { wallet: wallet.id, price: 40, counter: 'tickets' }
    const { paid } = await sale.purchase(code, { take: 'left', pay })
    const [, hold, settle] = await wallet.entries()
    expect(hold).toMatchObject({ kind: 'hold', amount: 80, metadata: { sale: sale.id } })
    expect(settle).toMatchObject({ kind: 'settle', amount: 40, counter: 'tickets', metadata: { sale: sale.id } })
    const { money, text } = await wallet.holdRef(paid?.hold ?? '').explain()
    expect(money).toMatchObject({ reserved: 80, charged: 40, returned: 40, left: 0 })
    expect(text).toContain('40')
    // Nobody but the engine can touch the hold of a purchase.
    await expect(wallet.holdRef(paid?.hold ?? '').release({ key: path.key() })).rejects.toMatchObject({
      code: 'invalid_argument',
    })
    expect(await wallet.refund(settle?.seq ?? 0, 40, { key: path.key() })).toMatchObject({ available: 100 })
  })

  it('is refused where an item has no price, or all together would be too much', async () => {
    const wallet = await path.wallet(100)
    const { sale, fill } = await newSale(path)
    const code = await fill('ann', { id: 'guitar' }, { id: 'poster', quantity: 2 })
    const buy = (price: unknown) => refusal(sale.purchase(code, { pay: { wallet: wallet.id, price } as never }))
    expect(await buy({ guitar: 1 })).toMatchObject({ code: 'invalid_argument' })
    expect(await buy(Number.MAX_SAFE_INTEGER)).toMatchObject({ code: 'invalid_amount' })
    await untouched(wallet, 100)
    expect(await sale.purchase(code, { pay: { wallet: wallet.id, price: 0 } })).toMatchObject({ paid: { amount: 0 } })
    await untouched(wallet, 100)
  })

  if (path.name === 'Postgres') return
  it.each([
    ['invalid_argument', { pay: null }],
    ['invalid_argument', { pay: 'w' }],
    ['invalid_argument', { pay: { price: 1 } }],
    ['invalid_argument', { pay: { wallet: '', price: 1 } }],
    ['invalid_amount', { pay: { wallet: 'w' } }],
    ['invalid_amount', { pay: { wallet: 'w', price: -1 } }],
    ['invalid_amount', { pay: { wallet: 'w', price: 0.5 } }],
    ['invalid_amount', { pay: { wallet: 'w', price: [1] } }],
    ['invalid_amount', { pay: { wallet: 'w', price: { guitar: '1' } } }],
    ['invalid_argument', { pay: { wallet: 'w', price: 1, counter: 7 } }],
    ['invalid_argument', { pay: { wallet: 'w', price: 1, counter: 'wallets' } }],
    ['invalid_argument', { pay: { wallet: 'w', price: 1 }, durability: 'memory' }],
    ['invalid_argument', { pay: { wallet: 'w', price: 1 }, timeout: 0 }],
  ])('is %s before anything happens: %j', async (code, options) => {
    // The sale does not exist: whoever asks for it is told so.
    expect(await refusal(path.hf.sale('none').purchase('x', options as never))).toMatchObject({ code })
    await expect(path.hf.sale('none').purchase('x')).rejects.toMatchObject({ code: 'sale_not_found' })
  })
})
