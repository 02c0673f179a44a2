/** Every name that answers have, and no other: what callers write against must not lose one unnoticed. */
import { expect, it } from 'vitest'
import { onBothPaths } from './support/paths.js'

const STATE = ['id', 'currency', 'available', 'reserved', 'creditLimit', 'status', 'seq', 'epoch', 'head']
const OPENED = ['openedAt', 'updatedAt']
const RECEIPT = ['entry', 'available', 'reserved', 'replayed', 'durability']
const ENTRY = [
  'seq',
  'epoch',
  'kind',
  'key',
  'at',
  'amount',
  'availableDelta',
  'reservedDelta',
  'available',
  'reserved',
]
const CHAIN = ['counter', 'prev', 'hash']
const HOLD = ['id', 'amount', 'captured', 'left', 'expiresAt']

const names = (of: object): string[] => Object.keys(of).sort()
const sorted = (...lists: string[][]): string[] => lists.flat().sort()

onBothPaths((path) => {
  it('answers have the names that are documented', async () => {
    const wallet = path.hf.wallet('shapes')
    expect(names(await wallet.open({ currency: 'usd' }))).toEqual(sorted(STATE, OPENED))
    const credit = await wallet.credit(100, { key: 'in' })
    expect(names(credit)).toEqual(sorted(RECEIPT))
    expect(names(credit.entry)).toEqual(sorted(ENTRY, CHAIN))

    const hold = await wallet.hold(50, { key: 'hold', ttl: 60_000, metadata: { call: 1 } })
    for (const name of [...HOLD, 'receipt']) expect(hold, name).toHaveProperty(name)
    expect(names(hold.receipt)).toEqual(sorted(RECEIPT))
    expect(names(hold.receipt.entry)).toEqual(sorted(ENTRY, CHAIN, ['hold', 'metadata']))

    const capture = await hold.capture(20, { key: 'capture' })
    expect(names(capture)).toEqual(sorted(RECEIPT, ['hold']))
    expect(names(capture.hold)).toEqual(sorted(HOLD))
    const refund = await wallet.refund(capture.entry.seq, 5, { key: 'refund' })
    expect(names(refund.entry)).toEqual(sorted(ENTRY, CHAIN, ['hold', 'of']))

    expect(names((await wallet.get()) ?? {})).toEqual(sorted(STATE, OPENED))
    const [first] = await wallet.entries()
    expect(first).toEqual(credit.entry)
    const [open] = await wallet.holds()
    expect(names(open ?? {})).toEqual(sorted(HOLD, ['status', 'refunded', 'seq', 'madeAt', 'metadata']))
  })
})
