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

  const byAttempt = (a: OpenIntent, b: OpenIntent) => a.attempt - b.attempt

  /** Those about the wallets of these, the oldest first. */
  async function openOf(...intents: Intent[]): Promise<OpenIntent[]> {
    const { open } = await subject.intents.moving(intents.map(({ source }) => ({ ref: source, seq: 0 })))
    return open.toSorted(byAttempt)
  }

  async function begin(intent: Intent): Promise<number> {
    const [begun] = await subject.intents.begin([intent])
    return begun?.attempt ?? 0
  }

  test('are there as they were begun, until they end', async () => {
    const [one, two] = [await newIntent(), await newIntent({ fee: 0, metadata: '' })]
    const begun = await subject.intents.begin([one, two])
    const [first, second] = begun.map(({ attempt }) => attempt) as [number, number]
    expect(begun).toEqual([
      { attempt: first, fresh: true, sourceCurrency: 'EUR', targetCurrency: 'EUR' },
      { attempt: second, fresh: true, sourceCurrency: 'EUR', targetCurrency: 'EUR' },
    ])
    const open = [
      { ...one, attempt: first },
      { ...two, attempt: second },
    ].sort(byAttempt)
    expect(await openOf(one, two)).toEqual(open)
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

  /** Nothing but these is open. */
  async function beginAlone(count: number): Promise<{ intents: Intent[]; attempts: number[] }> {
    for (const left of await subject.intents.claim(Number.MAX_SAFE_INTEGER, 1_000)) {
      await subject.intents.end([{ ...left, attempt: 0 }])
    }
    const [intents, attempts]: [Intent[], number[]] = [[], []]
    for (let n = 0; n < count; n += 1) {
      const intent = await newIntent()
      intents.push(intent)
      attempts.push(await begin(intent))
    }
    return { intents, attempts }
  }

  test('tell between which numbers they are', async () => {
    const { attempts } = await beginAlone(3)
    expect(await subject.intents.numbers()).toEqual({ oldest: attempts[0], newest: attempts[2] })
    await beginAlone(0)
    expect(await subject.intents.numbers()).toBeNull()
  })

  test('are claimed up to a number, the oldest first, and have another then', async () => {
    const { intents, attempts } = await beginAlone(4)
    const upTo = attempts[2] as number
    const [first, second] = [await subject.intents.claim(upTo, 2), await subject.intents.claim(upTo, 2)]
    const among = (claimed: OpenIntent[]) => claimed.toSorted(byAttempt).map(({ attempt: _, ...intent }) => intent)
    expect(among(first)).toEqual(expect.arrayContaining(intents.slice(0, 2)))
    expect(among(second)).toEqual(intents.slice(2, 3))
    const given = [...first, ...second].map(({ attempt }) => attempt)
    expect(Math.min(...given)).toBeGreaterThan(attempts[3] as number)
    expect(new Set(given).size).toBe(3)
    expect(await openOf(...first)).toEqual(first.toSorted(byAttempt))
    expect(await subject.intents.claim(upTo, 2)).toEqual([])
  })

  test('are not claimed by who is at work on them', async () => {
    const { intents, attempts } = await beginAlone(3)
    const [first, , last] = attempts as [number, number, number]
    const claimed = await subject.intents.claim(last, 10, [first, last])
    expect(claimed).toMatchObject([{ key: intents[1]?.key }])
  })

  test('are claimed by one of those who ask at once', async () => {
    const { intents, attempts } = await beginAlone(60)
    const upTo = attempts.at(-1) as number
    const claims = await Promise.all([1, 2, 3, 4].map(() => subject.intents.claim(upTo, 15)))
    const keysOf = (claimed: Intent[]) => claimed.map(({ key }) => key)
    const keys = keysOf(claims.flat())
    expect(new Set(keys).size).toBe(keys.length)
    // Who is told to leave something to another may find less than there is.
    const rest = await subject.intents.claim(upTo, 60)
    expect([...keys, ...keysOf(rest)].sort()).toEqual(keysOf(intents).sort())
  })

  test('are not claimed after their caller has come again', async () => {
    const { intents, attempts } = await beginAlone(1)
    await begin(intents[0] as Intent)
    expect(await subject.intents.claim(attempts[0] as number, 10)).toEqual([])
  })

  test('stay when somebody has set to work on them since they were seen', async () => {
    const intent = await newIntent()
    const seen = await begin(intent)
    const claims = await subject.intents.claim(seen, 1_000)
    const claimed = claims.find(({ key }) => key === intent.key)?.attempt as number
    expect(claimed).toBeGreaterThan(seen)
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
