import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Intent, OpenIntent } from '../../src/journal/index.js'
import { newRef, newWallet, SUBJECTS, type Subject } from './journals.js'

describe.each(Object.keys(SUBJECTS))('transfers that are under way, in the tables of %s', (name) => {
  let subject: Subject
  let keys = 0

  beforeAll(async () => {
    subject = await (SUBJECTS[name] as () => Promise<Subject>)()
  })
  afterAll(() => subject.close())

  async function newIntent(changes: Partial<Intent> = {}): Promise<Intent> {
    keys += 1
    const { ref: source } = await newWallet(subject.journal)
    const { ref: target } = await newWallet(subject.journal)
    const rest = { tenant: 'test', amount: 30, fee: 1, counter: 'revenue', metadata: '{"a":"\\"b\\""}' }
    return { source, target, key: `key "${keys}"`, ...rest, ...changes }
  }

  /** Those about the wallets of these, in the order in which they are told. */
  async function openOf(...intents: Intent[]): Promise<OpenIntent[]> {
    const sources = new Set(intents.map(({ source }) => source))
    return (await subject.intents.open(1_000)).filter(({ source }) => sources.has(source))
  }

  async function begin(intent: Intent): Promise<number> {
    const [begun] = await subject.intents.begin([intent])
    return begun?.attempt ?? 0
  }

  test('are there as they were begun, the oldest first, until they end', async () => {
    const [one, two] = [await newIntent(), await newIntent({ fee: 0, metadata: '' })]
    const begun = await subject.intents.begin([one, two])
    const [first, second] = begun.map(({ attempt }) => attempt) as [number, number]
    expect(begun).toEqual([
      { attempt: first, fresh: true, sourceCurrency: 'EUR', targetCurrency: 'EUR' },
      { attempt: second, fresh: true, sourceCurrency: 'EUR', targetCurrency: 'EUR' },
    ])
    const byAttempt = (a: OpenIntent, b: OpenIntent) => a.attempt - b.attempt
    const open = [
      { ...one, attempt: first },
      { ...two, attempt: second },
    ].sort(byAttempt)
    expect(await openOf(one, two)).toEqual(open)
    expect(await subject.intents.open(1)).toHaveLength(1)
    await subject.intents.end([{ ...one, attempt: 0 }])
    expect(await openOf(one, two)).toEqual([{ ...two, attempt: second }])
    await subject.intents.end([
      { ...one, attempt: 0 },
      { ...two, attempt: second },
    ])
    expect(await openOf(one, two)).toEqual([])
  })

  test('get another number each time, and keep what they were first begun with', async () => {
    const intent = await newIntent()
    const first = await begin(intent)
    const second = await begin({ ...intent, counter: 'other', metadata: '' })
    expect(second).toBeGreaterThan(first)
    expect(await openOf(intent)).toEqual([{ ...intent, attempt: second }])
    await subject.intents.end([{ ...intent, attempt: 0 }])
    expect(await begin(intent)).toBeGreaterThan(second)
  })

  test('may be begun twice in one call', async () => {
    const intent = await newIntent()
    const [a, b] = await subject.intents.begin([intent, intent])
    expect(a).toEqual(b)
    expect(a).toMatchObject({ fresh: false })
    expect(await openOf(intent)).toEqual([{ ...intent, attempt: a?.attempt }])
  })

  test('are fresh for whoever begins them alone, and before all others', async () => {
    const [one, two] = [await newIntent(), await newIntent()]
    expect(await subject.intents.begin([one])).toMatchObject([{ fresh: true }])
    expect(await subject.intents.begin([two, one])).toMatchObject([{ fresh: true }, { fresh: false }])
    await subject.intents.end([{ ...one, attempt: 0 }])
    expect(await subject.intents.begin([one])).toMatchObject([{ fresh: true }])
  })

  test('are others with another destination, amount or fee', async () => {
    const intent = await newIntent()
    const { ref: target } = await newWallet(subject.journal)
    const others = [intent, { ...intent, target }, { ...intent, amount: 31 }, { ...intent, fee: 2 }]
    for (const other of others) await begin(other)
    expect(await openOf(intent)).toHaveLength(4)
    await subject.intents.end([{ ...intent, amount: 31, attempt: 0 }])
    expect((await openOf(intent)).map(({ amount }) => amount)).toEqual([30, 30, 30])
  })

  test('are claimed by one of those who saw them', async () => {
    const intent = await newIntent()
    const seen = await begin(intent)
    const claims = await Promise.all([1, 2, 3].map(() => subject.intents.claim(seen)))
    const won = claims.filter((claim) => claim !== null)
    expect(won).toHaveLength(1)
    expect(won[0]).toBeGreaterThan(seen)
    expect(await openOf(intent)).toEqual([{ ...intent, attempt: won[0] }])
    expect(await subject.intents.claim(seen)).toBeNull()
  })

  test('are not claimed after their caller has come again', async () => {
    const intent = await newIntent()
    const seen = await begin(intent)
    await begin(intent)
    expect(await subject.intents.claim(seen)).toBeNull()
  })

  test('stay when somebody has set to work on them since they were seen', async () => {
    const intent = await newIntent()
    const seen = await begin(intent)
    const claimed = (await subject.intents.claim(seen)) as number
    await subject.intents.end([{ ...intent, attempt: seen }])
    expect(await openOf(intent)).toEqual([{ ...intent, attempt: claimed }])
    const again = await begin(intent)
    await subject.intents.end([{ ...intent, attempt: claimed }])
    expect(await openOf(intent)).toEqual([{ ...intent, attempt: again }])
    await subject.intents.end([{ ...intent, attempt: again }])
    expect(await openOf(intent)).toEqual([])
  })

  test('are not begun where a wallet is missing or the currencies differ', async () => {
    const intent = await newIntent()
    const { ref: dollars } = await newWallet(subject.journal, 'test', 'USD')
    const begun = await subject.intents.begin([
      { ...intent, source: newRef() },
      { ...intent, target: newRef() },
      { ...intent, target: dollars },
    ])
    expect(begun).toEqual([
      { attempt: 0, fresh: false, sourceCurrency: null, targetCurrency: 'EUR' },
      { attempt: 0, fresh: false, sourceCurrency: 'EUR', targetCurrency: null },
      { attempt: 0, fresh: false, sourceCurrency: 'EUR', targetCurrency: 'USD' },
    ])
    expect(await openOf(intent)).toEqual([])
  })

  test('are seen on their way between buckets', async () => {
    const intent = await newIntent()
    const buckets = [intent.source, intent.target].map((ref) => ({ ref, seq: 0 }))
    const nothing = { arrived: false, open: [] }
    expect(await subject.intents.moving(buckets)).toEqual(nothing)
    const attempt = await begin(intent)
    await begin(await newIntent())
    expect(await subject.intents.moving(buckets)).toEqual({ arrived: false, open: [{ ...intent, attempt }] })
    await subject.intents.end([{ ...intent, attempt }])
    expect(await subject.intents.moving(buckets)).toEqual(nothing)
  })
})
