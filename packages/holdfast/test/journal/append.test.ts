import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Entry } from '../../src/machine/index.js'
import { append, forged, kept, load, newRef, newWallet, raise, SUBJECTS, type Subject, verdictsOf } from './journals.js'

describe.each(Object.keys(SUBJECTS))('append to the journal of %s', (name) => {
  let subject: Subject

  beforeAll(async () => {
    subject = await (SUBJECTS[name] as () => Promise<Subject>)()
  })
  afterAll(() => subject.close())

  /** What the journal holds of a wallet, by key, checked for gaps. */
  async function keysOf(ref: string): Promise<string[]> {
    const entries = await subject.journal.entries(ref, 1, 1_000)
    expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, index) => index + 1))
    for (const [index, entry] of entries.slice(1).entries()) expect(entry.prev).toBe(entries[index]?.hash)
    return entries.map(({ key }) => key)
  }

  test('a run is kept to the letter, and the row says what it led to', async () => {
    const { journal } = subject
    const wallet = await newWallet(journal)
    const entries = [
      wallet.credit('a', 500),
      wallet.make({ kind: 'limit', key: 'b', amount: 70 }),
      wallet.make({ kind: 'hold', key: 'c', amount: 30, ttlMs: 1_000, metadata: '{"a":"\\"{},NULL\\\\"}' }),
      wallet.make({ kind: 'capture', key: 'd "\\{},', hold: 'c', amount: 40, beyond: true, counter: 'fees' }),
      wallet.make({ kind: 'debit', key: 'NULL', amount: 5 }),
      wallet.make({ kind: 'refund', key: 'f', of: 5, charge: 5, amount: 2, facts: factsAt(wallet.state) }),
      wallet.make({ kind: 'settle', key: 'g 日本 🙂', hold: 'c', amount: 40 }),
      wallet.make({ kind: 'freeze', key: 'h' }),
    ]
    expect(await verdictsOf(journal, wallet.file(...entries))).toEqual(entries.map(() => 'appended'))
    expect(await journal.entries(wallet.ref, 1, 100)).toEqual(entries.map(kept))
    expect(await journal.entries(wallet.ref, 3, 2)).toEqual(entries.slice(2, 4).map(kept))
    expect(await journal.find(['d "\\{},', 'g', 'h'].map((key) => ({ ref: wallet.ref, key })))).toEqual([
      kept(entries[3] as Entry),
      null,
      kept(entries[7] as Entry),
    ])
    const { epoch, seq, head, at, available, reserved, creditLimit, status, due, since } = wallet.state
    const row = { epoch, seq, head, at, available, reserved, creditLimit, status, due, since, memory: false }
    expect(await journal.read([wallet.ref])).toEqual([
      {
        ...row,
        ref: wallet.ref,
        id: `id-${wallet.ref}`,
        owner: 'redis',
        currency: 'EUR',
        metadata: '',
        initialLimit: 0,
        openedAt: expect.any(Number),
      },
    ])
  })

  test('out of order is put in order', async () => {
    const wallet = await newWallet(subject.journal)
    const [a, b, c] = [wallet.credit('a'), wallet.credit('b'), wallet.credit('c')]
    expect(await verdictsOf(subject.journal, wallet.file(c, a, b))).toEqual(['appended', 'appended', 'appended'])
    expect(await keysOf(wallet.ref)).toEqual(['a', 'b', 'c'])
  })

  test('what comes before its time is a gap, and fits later', async () => {
    const wallet = await newWallet(subject.journal)
    const [a, b, c] = [wallet.credit('a'), wallet.credit('b'), wallet.credit('c')]
    expect(await append(subject.journal, wallet.file(b))).toEqual([{ type: 'gap', seq: 0 }])
    expect(await append(subject.journal, wallet.file(a, c))).toEqual([{ type: 'appended' }, { type: 'gap', seq: 1 }])
    expect(await verdictsOf(subject.journal, wallet.file(b))).toEqual(['appended'])
    expect(await verdictsOf(subject.journal, wallet.file(c))).toEqual(['appended'])
    expect(await keysOf(wallet.ref)).toEqual(['a', 'b', 'c'])
  })

  test('what is there already is a yes, and what is left of its run goes in', async () => {
    const wallet = await newWallet(subject.journal)
    const entries = ['a', 'b', 'c', 'd'].map((key) => wallet.credit(key))
    await append(subject.journal, wallet.file(...entries.slice(0, 2)))
    expect(await verdictsOf(subject.journal, wallet.file(...entries.slice(0, 2)))).toEqual(['there', 'there'])
    expect(await verdictsOf(subject.journal, wallet.file(...entries))).toEqual([
      'there',
      'there',
      'appended',
      'appended',
    ])
    expect(await keysOf(wallet.ref)).toEqual(['a', 'b', 'c', 'd'])
  })

  test('what is there stays a yes under a later epoch', async () => {
    const wallet = await newWallet(subject.journal)
    const a = wallet.credit('a')
    await append(subject.journal, wallet.file(a))
    const b = wallet.credit('b')
    const { state } = await load(subject.journal, wallet.ref)
    expect(await append(subject.journal, wallet.file(a, b))).toEqual([
      { type: 'there' },
      { type: 'epoch', epoch: state.epoch, owner: 'redis' },
    ])
  })

  test('the same entry twice in one call is one entry', async () => {
    const wallet = await newWallet(subject.journal)
    const [a, b] = [wallet.credit('a'), wallet.credit('b')]
    expect(await verdictsOf(subject.journal, wallet.file(a, b, a, { ...b }))).toEqual(new Array(4).fill('appended'))
    expect(await verdictsOf(subject.journal, wallet.file(b, b))).toEqual(['there', 'there'])
    expect(await keysOf(wallet.ref)).toEqual(['a', 'b'])
  })

  test('of a fork in one call one side goes in, whole', async () => {
    const wallet = await newWallet(subject.journal)
    const other = wallet.fork()
    const filed = [
      ...wallet.file(wallet.credit('a')),
      ...other.file(other.credit('x', 20), other.credit('y')),
      ...wallet.file(wallet.credit('b')),
    ]
    expect(await verdictsOf(subject.journal, filed)).toEqual(['appended', 'stale', 'stale', 'appended'])
    expect(await keysOf(wallet.ref)).toEqual(['a', 'b'])
  })

  test('a fork of what is there is stale, and so is what rests on it', async () => {
    const wallet = await newWallet(subject.journal)
    const other = wallet.fork()
    await append(subject.journal, wallet.file(wallet.credit('a'), wallet.credit('b')))
    const { epoch } = wallet.state
    const [x, y, z] = [other.credit('x'), other.credit('y'), other.credit('z')]
    const stale = { type: 'stale', epoch }
    expect(await append(subject.journal, other.file(x, y, z))).toEqual([stale, stale, stale])
    // Its number fits, what it rests on does not.
    expect(await append(subject.journal, other.file(z))).toEqual([stale])
    expect(await keysOf(wallet.ref)).toEqual(['a', 'b'])
  })

  test('the right seq on the wrong hash is stale', async () => {
    const wallet = await newWallet(subject.journal)
    await append(subject.journal, wallet.file(wallet.credit('a')))
    const b = wallet.credit('b')
    expect(await verdictsOf(subject.journal, wallet.file(forged(b, { prev: '0'.repeat(40) })))).toEqual(['stale'])
    expect(await verdictsOf(subject.journal, wallet.file(b))).toEqual(['appended'])
  })

  test('the right hash under another seq is not accepted', async () => {
    const wallet = await newWallet(subject.journal)
    await append(subject.journal, wallet.file(wallet.credit('a'), wallet.credit('b')))
    const c = wallet.credit('c')
    const filed = wallet.file(forged(c, { seq: 5 }), forged(c, { seq: 1, key: 'd' }))
    expect(await verdictsOf(subject.journal, filed)).toEqual(['gap', 'stale'])
    expect(await keysOf(wallet.ref)).toEqual(['a', 'b'])
  })

  test.each(['available', 'reserved'] as const)(
    '%s that does not add up is stale, first or later in a run',
    async (field) => {
      const wallet = await newWallet(subject.journal)
      await append(subject.journal, wallet.file(wallet.credit('a')))
      const before = wallet.fork()
      const b = wallet.credit('b')
      expect(await verdictsOf(subject.journal, wallet.file(forged(b, { [field]: b[field] + 1 })))).toEqual(['stale'])
      const c = forged(wallet.credit('c'), { [field]: 1_000_000 })
      const d = wallet.credit('d')
      const rest = forged(d, { prev: c.hash, [field]: 1_000_000 + (field === 'available' ? d.availableDelta : 0) })
      expect(await verdictsOf(subject.journal, wallet.file(b, c, rest))).toEqual(['appended', 'stale', 'stale'])
      expect(await keysOf(before.ref)).toEqual(['a', 'b'])
      const [row] = await subject.journal.read([wallet.ref])
      expect(row).toMatchObject({ seq: 2, head: b.hash, available: b.available, reserved: b.reserved })
    },
  )

  test('a key that was seen is refused for good; what came before it goes in, what rests on it does not', async () => {
    const wallet = await newWallet(subject.journal)
    await append(subject.journal, wallet.file(wallet.credit('k'), wallet.credit('l')))
    const [a, k, b] = [wallet.credit('a'), wallet.credit('k', 77), wallet.credit('b')]
    expect(await verdictsOf(subject.journal, wallet.file(a, k, b))).toEqual(['appended', 'seen', 'stale'])
    expect(await verdictsOf(subject.journal, wallet.file(k, b))).toEqual(['seen', 'stale'])
    expect(await keysOf(wallet.ref)).toEqual(['k', 'l', 'a'])
    const later = await load(subject.journal, wallet.ref)
    expect(await verdictsOf(subject.journal, later.file(later.credit('l')))).toEqual(['seen'])
  })

  test('the same key twice in one run: the first goes in', async () => {
    const wallet = await newWallet(subject.journal)
    const entries = ['a', 'k', 'k', 'b'].map((key) => wallet.credit(key))
    expect(await verdictsOf(subject.journal, wallet.file(...entries))).toEqual([
      'appended',
      'appended',
      'stale',
      'stale',
    ])
    expect(await verdictsOf(subject.journal, wallet.file(...entries))).toEqual(['there', 'there', 'seen', 'stale'])
    expect(await keysOf(wallet.ref)).toEqual(['a', 'k'])
  })

  test('the same key in two runs of one call: the one that fits goes in', async () => {
    const wallet = await newWallet(subject.journal)
    const other = wallet.fork()
    const filed = [...wallet.file(wallet.credit('k')), ...other.file(other.credit('k', 20), other.credit('x'))]
    expect(await verdictsOf(subject.journal, filed)).toEqual(['appended', 'seen', 'stale'])
    expect(await keysOf(wallet.ref)).toEqual(['k'])
  })

  test('the same key in two wallets is two keys', async () => {
    const [one, two] = [await newWallet(subject.journal), await newWallet(subject.journal)]
    const filed = [...one.file(one.credit('k')), ...two.file(two.credit('k'))]
    expect(await verdictsOf(subject.journal, filed)).toEqual(['appended', 'appended'])
  })

  test('an entry of an old epoch is never accepted', async () => {
    const wallet = await newWallet(subject.journal)
    const a = wallet.credit('a')
    const raised = await load(subject.journal, wallet.ref)
    expect(raised.state.epoch).toBeGreaterThan(wallet.state.epoch)
    expect(await append(subject.journal, wallet.file(a))).toEqual([
      { type: 'epoch', epoch: raised.state.epoch, owner: 'redis' },
    ])
    expect(await verdictsOf(subject.journal, raised.file(raised.credit('a')))).toEqual(['appended'])
  })

  test('an entry of an epoch that was never raised is not accepted', async () => {
    const wallet = await newWallet(subject.journal)
    const { epoch } = wallet.state
    wallet.state.epoch += 1
    expect(await append(subject.journal, wallet.file(wallet.credit('a')))).toEqual([
      { type: 'epoch', epoch, owner: 'redis' },
    ])
  })

  test('a dump of a later timeline, restored into a younger server, goes on from its own epochs', async () => {
    const wallet = await newWallet(subject.journal)
    const later = await raise(subject.journal, wallet.ref, { epochMin: wallet.state.epoch + 1_000_000_000_000 })
    wallet.state.epoch = later?.state.epoch ?? 0
    expect(await append(subject.journal, wallet.file(wallet.credit('a')))).toEqual([{ type: 'appended' }])
    const { epoch, seq, head } = wallet.state
    const refusal = { ref: wallet.ref, epoch, seq, head, key: 'k', hold: '' }
    expect(await subject.journal.confirm([refusal])).toMatchObject([{ stands: true, epoch }])
    expect((await raise(subject.journal, wallet.ref))?.state.epoch).toBe(epoch + 1)
  })

  test('an entry of a wallet that does not exist is stale', async () => {
    const wallet = (await newWallet(subject.journal)).fork()
    const filed = [{ ref: newRef(), entry: wallet.credit('a'), deadline: 0 }]
    expect(await append(subject.journal, filed)).toEqual([{ type: 'stale', epoch: 0 }])
  })

  test('after its deadline an entry is late, whatever is before it goes in, and what rests on it is stale', async () => {
    const wallet = await newWallet(subject.journal)
    const [a, b, c] = [wallet.credit('a'), wallet.credit('b'), wallet.credit('c')]
    const soon = Date.now() + 60_000
    const filed = [
      { ref: wallet.ref, entry: a, deadline: soon },
      { ref: wallet.ref, entry: b, deadline: 1 },
      { ref: wallet.ref, entry: c, deadline: soon },
    ]
    expect(await verdictsOf(subject.journal, filed)).toEqual(['appended', 'late', 'stale'])
    expect(await verdictsOf(subject.journal, filed)).toEqual(['there', 'late', 'stale'])
    expect(await keysOf(wallet.ref)).toEqual(['a'])
  })

  test('a copy with a stricter deadline counts', async () => {
    const wallet = await newWallet(subject.journal)
    const entry = wallet.credit('a')
    const filed = [0, 1].map((deadline) => ({ ref: wallet.ref, entry, deadline }))
    expect(await verdictsOf(subject.journal, filed)).toEqual(['late', 'late'])
  })

  test.each([
    ['a NUL', 'x\0y'],
    ['half a surrogate pair', 'x\ud800y'],
  ])('%s in a text is bad for its entry alone, and for what rests on it', async (_, text) => {
    const wallets = await Promise.all(Array.from({ length: 5 }, () => newWallet(subject.journal)))
    const keys = (index: number) => (index === 3 ? ['a', 'b', text, 'c', 'd'] : ['a', 'b'])
    const filed = wallets.flatMap((wallet, index) => wallet.file(...keys(index).map((key) => wallet.credit(key))))
    const yes = ['appended', 'appended']
    expect(await verdictsOf(subject.journal, filed)).toEqual(
      wallets.flatMap((_wallet, index) => (index === 3 ? [...yes, 'bad', 'stale', 'stale'] : yes)),
    )
    expect(await keysOf(wallets[3]?.ref ?? '')).toEqual(['a', 'b'])
  })

  test('every verdict at once: one never costs another', async () => {
    const { journal } = subject
    const make = () => newWallet(journal)
    const [good, there, seen, old, gap, stale, late, bad, last] = [
      await make(),
      await make(),
      await make(),
      await make(),
      await make(),
      await make(),
      await make(),
      await make(),
      await make(),
    ]
    const known = there.credit('a')
    const fork = stale.fork()
    await append(journal, [...there.file(known), ...seen.file(seen.credit('k')), ...stale.file(stale.credit('a'))])
    await load(journal, old.ref)
    gap.credit('missing')
    const filed = [
      ...good.file(good.credit('a'), good.credit('b')),
      ...there.file(known, there.credit('b')),
      ...seen.file(seen.credit('b'), seen.credit('k', 5)),
      ...old.file(old.credit('a')),
      ...gap.file(gap.credit('a')),
      ...stale.file(fork.credit('x')),
      { ref: late.ref, entry: late.credit('a'), deadline: 1 },
      ...bad.file(bad.credit('\0')),
      { ref: newRef(), entry: bad.credit('z'), deadline: 0 },
      ...last.file(last.credit('a')),
    ]
    const expected = [
      'appended',
      'appended',
      'there',
      'appended',
      'appended',
      'seen',
      'epoch',
      'gap',
      'stale',
      'late',
      'bad',
      'stale',
      'appended',
    ]
    expect(await verdictsOf(journal, filed)).toEqual(expected)
    const { verdicts, clock } = await journal.append([...filed].reverse())
    const again = expected.map((type) => (type === 'appended' ? 'there' : type))
    expect(verdicts.map(({ type }) => type).reverse()).toEqual(again)
    expect(Math.abs(clock - Date.now())).toBeLessThan(10_000)
  })

  test('nothing sent is nothing done', async () => {
    expect((await subject.journal.append([])).verdicts).toEqual([])
  })
})

function factsAt({ epoch, seq }: { epoch: number; seq: number }) {
  return { epoch, seq, refunded: 0, holdClosed: false, hold: { charged: 0, refunded: 0 } }
}
