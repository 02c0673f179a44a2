import { expect, it } from 'vitest'
import { onBothPaths, refusal } from './support/paths.js'

onBothPaths((path) => {
  it('opens a wallet that was not there', async () => {
    const wallet = path.hf.wallet('first')
    expect(await wallet.get()).toBeNull()
    const opened = await wallet.open({ currency: 'usd', creditLimit: 50, metadata: { plan: 'pro' } })
    expect(opened).toMatchObject({
      id: 'first',
      currency: 'usd',
      available: 0,
      reserved: 0,
      creditLimit: 50,
      status: 'active',
      seq: 0,
      metadata: { plan: 'pro' },
    })
    expect(await wallet.get()).toEqual(opened)
    await wallet.credit(1, { key: path.key() })
  })

  it('changes nothing when the same is opened again, whatever happened since', async () => {
    const wallet = path.hf.wallet('again')
    await wallet.open({ currency: 'usd', creditLimit: 50, metadata: 'first' })
    await wallet.credit(100, { key: path.key() })
    await wallet.setCreditLimit(70, { key: path.key() })
    const before = await wallet.get()
    expect(await wallet.open({ currency: 'usd', creditLimit: 50, metadata: 'second' })).toEqual(before)
    expect(before).toMatchObject({ available: 100, creditLimit: 70, metadata: 'first' })
  })

  it.each([
    ['another currency', { currency: 'eur', creditLimit: 5 }],
    ['another limit', { currency: 'usd', creditLimit: 6 }],
    ['no limit', { currency: 'usd' }],
  ])('refuses %s, and tells what is there', async (_, other) => {
    const wallet = path.hf.wallet('exists')
    const before = await wallet.open({ currency: 'usd', creditLimit: 5 })
    expect(await refusal(wallet.open(other))).toMatchObject({
      code: 'wallet_exists',
      status: 409,
      currency: 'usd',
      creditLimit: 5,
    })
    expect(await wallet.get()).toEqual(before)
  })

  it('lets one of several who open at once with different parameters win', async () => {
    const wallet = path.hf.wallet('contested')
    const opens = await Promise.allSettled(['usd', 'eur', 'gbp', 'usd'].map((currency) => wallet.open({ currency })))
    const { currency } = (await wallet.get()) as { currency: string }
    for (const [index, asked] of ['usd', 'eur', 'gbp', 'usd'].entries()) {
      expect(opens[index]?.status).toBe(asked === currency ? 'fulfilled' : 'rejected')
    }
  })

  it('finds nothing to work on where nothing was opened', async () => {
    const wallet = path.hf.wallet('never')
    const refusals = await Promise.all([
      refusal(wallet.credit(1, { key: 'a' })),
      refusal(wallet.debit(1, { key: 'b' })),
      refusal(wallet.hold(1, { key: 'c', ttl: 1_000 })),
      refusal(wallet.holdRef('h').capture(1, { key: 'd' })),
      refusal(wallet.refund(1, 1, { key: 'e' })),
      refusal(wallet.close({ key: 'f' })),
    ])
    for (const error of refusals) expect(error).toMatchObject({ code: 'wallet_not_found', status: 404 })
    expect(await wallet.get({ pending: true })).toBeNull()
    expect(await wallet.entries()).toEqual([])
  })

  it('keeps tenants apart', async () => {
    const acme = path.hf.forTenant('acme')
    const mine = await path.wallet(10)
    const theirs = acme.wallet(mine.id)
    expect(await theirs.get()).toBeNull()
    await theirs.open({ currency: 'eur' })
    await theirs.credit(3, { key: 'same-key' })
    await mine.credit(4, { key: 'same-key' })
    expect(await theirs.get()).toMatchObject({ currency: 'eur', available: 3, seq: 1 })
    expect(await mine.get()).toMatchObject({ currency: 'usd', available: 14, seq: 2 })
    expect(acme.tenant).toBe('acme')
  })
})
