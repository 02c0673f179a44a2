import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Open, PaymentIntent } from '../../src/journal/index.js'
import { newRef, newWallet, SUBJECTS, type Subject } from './journals.js'

describe.each(Object.keys(SUBJECTS))('payments that are under way, in the tables of %s', (name) => {
  let subject: Subject
  beforeAll(async () => {
    subject = await (SUBJECTS[name] as () => Promise<Subject>)()
  })
  afterAll(() => subject.close())

  const newId = () => randomBytes(16).toString('hex')

  async function newPayment(changes: Partial<PaymentIntent> = {}): Promise<PaymentIntent> {
    const { ref: wallet } = await newWallet(subject.journal)
    const rest = { tenant: 'test', take: 'all' as const, perBuyer: 3, counter: 'revenue', metadata: '{"a":"\\"b\\""}' }
    const asked = { bucket: newRef(), code: `code-${wallet}`, id: newId(), amount: 30, prices: '1:10 7:20' }
    return { wallet, ...rest, ...asked, ...changes }
  }

  async function openOf(...asked: PaymentIntent[]): Promise<Open<PaymentIntent>[]> {
    const codes = new Set(asked.map(({ code }) => code))
    return (await subject.openPayments()).filter(({ code }) => codes.has(code))
  }

  async function begin(payment: PaymentIntent): Promise<{ attempt: number; id: string }> {
    const [begun] = await subject.payments.begin([payment])
    return begun as { attempt: number; id: string }
  }

  test('are there as they were begun, until they end', async () => {
    const [one, two] = [await newPayment(), await newPayment({ take: 'left', metadata: '', amount: 0 })]
    const begun = await subject.payments.begin([one, two])
    const [first, second] = begun.map(({ attempt }) => attempt) as [number, number]
    expect(begun).toEqual([
      { attempt: first, fresh: true, id: one.id, currency: 'EUR' },
      { attempt: second, fresh: true, id: two.id, currency: 'EUR' },
    ])
    const open = await openOf(one, two)
    expect(open).toHaveLength(2)
    expect(open).toEqual(
      expect.arrayContaining([
        { ...one, attempt: first },
        { ...two, attempt: second },
      ]),
    )
    await subject.payments.end([{ ...one, attempt: 0 }])
    expect(await openOf(one, two)).toEqual([{ ...two, attempt: second }])
  })

  test('are the same when the same is asked for again: its id counts, and another number', async () => {
    const payment = await newPayment()
    const first = await begin(payment)
    const [again] = await subject.payments.begin([{ ...payment, id: newId(), counter: 'other', metadata: '' }])
    expect(again).toMatchObject({ id: payment.id, fresh: false })
    expect(again?.attempt).toBeGreaterThan(first.attempt)
    expect(await openOf(payment)).toEqual([{ ...payment, attempt: again?.attempt }])
  })

  test('are another one when they are begun again after their end, which the end of the first leaves alone', async () => {
    const payment = await newPayment()
    await begin(payment)
    await subject.payments.end([{ ...payment, attempt: 0 }])
    const later = { ...payment, id: newId() }
    expect((await begin(later)).id).toBe(later.id)
    await subject.payments.end([{ ...payment, attempt: 0 }])
    expect(await openOf(payment)).toMatchObject([{ id: later.id }])
  })

  test('may be begun twice in one call', async () => {
    const payment = await newPayment()
    const [a, b] = await subject.payments.begin([payment, { ...payment, id: newId() }])
    expect(a).toEqual(b)
    expect(a).toMatchObject({ id: payment.id, fresh: false })
  })

  test('are others with another wallet, code, price or way of taking', async () => {
    const payment = await newPayment()
    const { ref: wallet } = await newWallet(subject.journal)
    const changes: Partial<PaymentIntent>[] = [
      { wallet },
      { amount: 31, prices: '1:11 7:20' },
      { take: 'left' },
      { prices: '1:20 7:10' },
    ]
    await begin(payment)
    for (const change of changes) await begin({ ...payment, ...change, id: newId() })
    expect(await openOf(payment)).toHaveLength(5)
  })

  test('are claimed by one of those who ask, and stay when somebody has set to work on them since', async () => {
    const payment = await newPayment()
    const { attempt } = await begin(payment)
    const claims = await Promise.all([1, 2, 3].map(() => subject.payments.claim(attempt, 1_000)))
    const won = claims.flat().filter(({ id }) => id === payment.id)
    expect(won).toEqual([{ ...payment, attempt: expect.any(Number) }])
    await subject.payments.end([{ ...payment, attempt }])
    expect(await openOf(payment)).toEqual(won)
    await subject.payments.end(won)
    expect(await openOf(payment)).toEqual([])
  })

  test('tell between which numbers they are', async () => {
    await subject.payments.end((await subject.openPayments()).map((one) => ({ ...one, attempt: 0 })))
    expect(await subject.payments.numbers()).toBeNull()
    const { attempt: oldest } = await begin(await newPayment())
    expect(await subject.payments.numbers()).toEqual({ oldest, newest: oldest })
    const { attempt: newest } = await begin(await newPayment())
    expect(await subject.payments.numbers()).toEqual({ oldest, newest })
  })

  test('are not begun without a wallet', async () => {
    const payment = await newPayment({ wallet: newRef() })
    expect(await subject.payments.begin([payment])).toEqual([{ attempt: 0, fresh: false, id: '', currency: null }])
    expect(await openOf(payment)).toEqual([])
  })
})
