import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { DueWallet, Journal, Snapshot } from '../../src/journal/index.js'
import { type Entry, genesisHash, type WalletState } from '../../src/machine/index.js'
import { append, kept, load, newRef, newWallet, raise, SUBJECTS, type Subject, verdictsOf, Writer } from './journals.js'

const TIMELINE = 1_000_000_000_000
/** Later than any clock: the time of a wallet only moves forward. */
const START = 5_000_000_000_000
const NO_FACTS = { refunded: 0, holdClosed: true, hold: { charged: 10, refunded: 0 } }

describe.each(Object.keys(SUBJECTS))('loading a wallet from the journal of %s', (name) => {
  let subject: Subject
  let journal: Journal

  beforeEach(async () => {
    subject = await (SUBJECTS[name] as () => Promise<Subject>)()
    journal = subject.journal
  })
  afterEach(() => subject.close())

  async function open(creditLimit = 0): Promise<string> {
    const ref = newRef()
    const head = genesisHash(ref, 'EUR')
    expect(
      await journal.open({ ref, tenant: 'test', id: 'i', currency: 'EUR', creditLimit, metadata: '{}', head }),
    ).toBe(true)
    return ref
  }

  async function takeOver(ref: string): Promise<Snapshot> {
    const taken = await journal.takeOver(ref)
    if (taken === null || typeof taken === 'string') throw new Error(`Not taken over: ${taken}`)
    return taken
  }

  function withoutMemory(state: WalletState): WalletState {
    return { ...state, base: state.seq, refundedByEntry: new Map(), closedHolds: new Map() }
  }

  test('a wallet is opened once', async () => {
    const ref = await open(70)
    const head = genesisHash(ref, 'USD')
    const again = { ref, tenant: 'other', id: 'x', currency: 'USD', creditLimit: 1, metadata: '', head }
    expect(await journal.open(again)).toBe(false)
    const [row] = await journal.read([ref, newRef(), ref])
    const expected = {
      ref,
      id: 'i',
      currency: 'EUR',
      metadata: '{}',
      initialLimit: 70,
      creditLimit: 70,
      seq: 0,
      status: 'active',
      owner: 'postgres',
      head: genesisHash(ref, 'EUR'),
      epoch: TIMELINE + 1,
    }
    expect(row).toMatchObject(expected)
    expect(await journal.read([ref, newRef(), ref])).toHaveLength(1)
    expect(row?.at).toBe(row?.openedAt)
  })

  test('many are raised at once: each gets its own state, and those that are not there get none', async () => {
    const refs = [await open(), newRef(), await open(), await open()]
    const [first, , second] = refs as [string, string, string]
    const wallet = await load(journal, first)
    await append(journal, wallet.file(wallet.credit('c', 100), wallet.hold('h', 30), wallet.hold('i', 40)))
    const other = await load(journal, second)
    await append(journal, other.file(other.credit('c', 5), other.hold('j', 2)))
    const asked = refs.map((ref, n) => ({ ref, epochMin: TIMELINE + 100 * n, memory: n === 3, known: null }))
    const raised = (await journal.raise(asked)) as (Snapshot | null)[]
    expect(raised.map((one) => one?.state.epoch)).toEqual([TIMELINE + 3, undefined, TIMELINE + 200, TIMELINE + 300])
    expect(raised.map((one) => one && [...one.state.holds.keys()].sort())).toEqual([['h', 'i'], null, ['j'], []])
    expect(raised.map((one) => one?.memory)).toEqual([false, undefined, false, true])
    expect(raised[0]?.state).toEqual(withoutMemory({ ...wallet.state, epoch: TIMELINE + 3 }))
  })

  test('the last entries come along where a wallet is used from memory, and nowhere else', async () => {
    const [one, other, empty] = [await load(journal, await open()), await load(journal, await open()), await open()]
    const made = Array.from({ length: 20 }, (_, n) => one.credit(`c${n}`))
    const few = [other.credit('c'), other.hold('h')]
    await append(journal, [...one.file(...made), ...other.file(...few)])
    expect((await raise(journal, one.ref))?.recent).toEqual([])
    expect((await raise(journal, one.ref, { memory: true }))?.recent).toEqual(made.slice(4).map(kept))
    const asked = [empty, one.ref, other.ref].map((ref) => ({ ref, epochMin: 0, memory: true, known: null }))
    const raised = (await journal.raise(asked)) as Snapshot[]
    expect(raised.map(({ recent }) => recent)).toEqual([[], made.slice(4).map(kept), few.map(kept)])
    // Once is for good.
    expect((await raise(journal, other.ref))?.recent).toEqual(few.map(kept))
  })

  test('a raise only grows, reaches what it is asked for, and gives the state', async () => {
    const ref = await open()
    const first = await raise(journal, ref)
    expect(first?.state.epoch).toBe(TIMELINE + 2)
    expect((await raise(journal, ref, { epochMin: TIMELINE + 100 }))?.state.epoch).toBe(TIMELINE + 100)
    expect((await raise(journal, ref, { epochMin: TIMELINE + 5 }))?.state.epoch).toBe(TIMELINE + 101)
    expect((await raise(journal, ref, { epochMin: TIMELINE + 101 }))?.state.epoch).toBe(TIMELINE + 102)
    expect(await raise(journal, newRef())).toBeNull()
    expect(Math.abs((first?.clock ?? 0) - Date.now())).toBeLessThan(10_000)
    const wallet = await load(journal, ref)
    const entries = [wallet.credit('c', 100), wallet.hold('h', 30), wallet.hold('i', 40)]
    entries.push(wallet.make({ kind: 'capture', key: 'k', hold: 'i', amount: 15 }))
    entries.push(wallet.make({ kind: 'release', key: 'r', hold: 'h' }), wallet.make({ kind: 'freeze', key: 'f' }))
    await append(journal, wallet.file(...entries))
    const loaded = await raise(journal, ref)
    expect(loaded?.state).toEqual(withoutMemory({ ...wallet.state, epoch: TIMELINE + 104 }))
    expect(loaded?.state.holds.get('i')).toEqual({
      amount: 40,
      captured: 15,
      left: 25,
      expiresAt: wallet.now + 60_000,
      refunded: 0,
    })
  })

  test('a hold stands as its last entry says, or as the one that closed it', async () => {
    const wallet = await newWallet(journal)
    const credit = wallet.credit('c', 100)
    const first = wallet.hold('h', 30)
    await append(journal, wallet.file(credit, first))
    expect(await journal.holdEntry(wallet.ref, 'h')).toEqual(kept(first))
    const capture = wallet.make({ kind: 'capture', key: 'p', hold: 'h', amount: 10 })
    const other = wallet.hold('i', 5)
    await append(journal, wallet.file(capture, other))
    expect(await journal.holdEntry(wallet.ref, 'h')).toEqual(kept(capture))
    const release = wallet.make({ kind: 'release', key: 'r', hold: 'h' })
    const charge = { charge: 10, hold: 'h', facts: { ...NO_FACTS, epoch: wallet.state.epoch, seq: wallet.state.seq } }
    const refund = wallet.make({ kind: 'refund', key: 'b', of: capture.seq, amount: 1, ...charge })
    await append(journal, wallet.file(release, refund))
    expect(await journal.holdEntry(wallet.ref, 'h')).toEqual(kept(release))
    expect(await journal.holdEntry(wallet.ref, 'i')).toEqual(kept(other))
    wallet.now += 60_000
    const [expire] = wallet.all({ kind: 'touch' }) as [Entry]
    await append(journal, wallet.file(expire))
    expect(await journal.holdEntry(wallet.ref, 'i')).toEqual(kept(expire))
    for (const none of ['c', 'p', 'nothing']) expect(await journal.holdEntry(wallet.ref, none)).toBeNull()
    expect(await journal.holdEntry(newRef(), 'h')).toBeNull()
  })

  test('a take-over raises an epoch of Redis and joins one of its own', async () => {
    const ref = await open()
    const joined = await takeOver(ref)
    expect(joined.state.epoch).toBe(TIMELINE + 1)
    const one = new Writer(ref, joined.state)
    await append(journal, one.file(one.credit('a')))
    expect((await takeOver(ref)).state).toEqual(withoutMemory(one.state))
    const redis = await load(journal, ref)
    const late = one.credit('b')
    expect((await takeOver(ref)).state.epoch).toBe(redis.state.epoch + 1)
    expect((await takeOver(ref)).state.epoch).toBe(redis.state.epoch + 1)
    expect(await verdictsOf(journal, [...one.file(late), ...redis.file(redis.credit('c'))])).toEqual(['epoch', 'epoch'])
    expect(await journal.read([ref])).toMatchObject([{ owner: 'postgres' }])
    expect(await journal.takeOver(newRef())).toBeNull()
  })

  test('who would only join takes nothing from Redis', async () => {
    const ref = await open()
    const loaded = await load(journal, ref)
    expect(await journal.takeOver(ref, { joinOnly: true })).toBe('loaded')
    expect(await verdictsOf(journal, loaded.file(loaded.credit('a')))).toEqual(['appended'])
    const taken = await takeOver(ref)
    expect(await journal.takeOver(ref, { joinOnly: true })).toMatchObject({
      state: { epoch: taken.state.epoch, seq: 1 },
    })
    const late = { ref, epoch: loaded.state.epoch, seq: 1, head: loaded.state.head, key: 'k', hold: '' }
    expect(await journal.confirm([late])).toMatchObject([{ stands: false, owner: 'postgres' }])
    expect(await append(journal, loaded.file(loaded.credit('b')))).toEqual([
      { type: 'epoch', epoch: taken.state.epoch, owner: 'postgres' },
    ])
    // Who announces himself is noticed by those who are there already.
    const here = new Writer(ref, taken.state)
    const announced = await journal.takeOver(ref, { joinOnly: true, announce: true })
    expect(announced).toMatchObject({ state: { epoch: taken.state.epoch + 1, seq: 1 } })
    expect(await append(journal, here.file(here.credit('c')))).toEqual([
      { type: 'epoch', epoch: taken.state.epoch + 1, owner: 'postgres' },
    ])
    await subject.leaveTimeline()
    expect(await journal.takeOver(ref, { joinOnly: true, announce: true })).toBe('loaded')
    expect(await journal.takeOver(newRef(), { joinOnly: true })).toBeNull()
  })

  test('a take-over waits for nobody who has the row, and changes nothing then', async () => {
    const ref = await open()
    const [before] = await journal.read([ref])
    for (const how of [{}, { joinOnly: true }, { announce: true }])
      expect(await subject.whileLocked(ref, () => journal.takeOver(ref, how))).toBe('locked')
    expect(await journal.read([ref])).toEqual([before])
    expect(await journal.takeOver(newRef(), { patient: true })).toBeNull()
    expect(await journal.takeOver(ref, { patient: true })).toMatchObject({ state: { seq: 0 } })
  })

  test('a take-over leaves an epoch of another timeline behind', async () => {
    const ref = await open()
    const before = await takeOver(ref)
    await subject.leaveTimeline()
    const [row] = await journal.read([ref])
    const after = await takeOver(ref)
    expect(after.state.epoch).toBeGreaterThan(row?.epoch ?? 0)
    expect(after.state.epoch % TIMELINE).toBe(before.state.epoch % TIMELINE)
    const writer = new Writer(ref, after.state)
    expect(await verdictsOf(journal, writer.file(writer.credit('a')))).toEqual(['appended'])
  })

  test('a wallet that was used in memory has no Postgres path', async () => {
    const ref = await open()
    expect(await raise(journal, ref, { memory: true })).toMatchObject({ memory: true })
    const raised = await raise(journal, ref)
    expect(raised?.memory).toBe(true)
    expect(await journal.takeOver(ref)).toBe('memory')
    expect(await journal.read([ref])).toMatchObject([{ owner: 'redis', memory: true, epoch: raised?.state.epoch }])
  })

  test('checkpoints change no answer: before, between and after holds', async () => {
    const ref = await open()
    await journal.checkpoint(ref)
    await journal.checkpoint(newRef())
    const wallet = await load(journal, ref)
    const steps = [
      () => wallet.credit('c', 100),
      () => wallet.hold('old'),
      () => wallet.hold('h', 20),
      () => wallet.make({ kind: 'capture', key: 'k', hold: 'h', amount: 5 }),
      () => wallet.make({ kind: 'settle', key: 's', hold: 'h', amount: 9 }),
      () =>
        wallet.make({
          kind: 'refund',
          key: 'f',
          of: 4,
          charge: 5,
          hold: 'h',
          amount: 2,
          facts: {
            epoch: wallet.state.epoch,
            seq: 5,
            refunded: 0,
            holdClosed: true,
            hold: { charged: 9, refunded: 0 },
          },
        }),
      () => wallet.hold('i', 3),
      () => wallet.make({ kind: 'release', key: 'r', hold: 'old' }),
      () => wallet.make({ kind: 'release', key: 'q', hold: 'i' }),
      () => wallet.credit('d'),
      () => wallet.hold('j', 4),
      () => wallet.make({ kind: 'extend', key: 'e', hold: 'j', amount: 4, ttlMs: 90_000 }),
    ]
    for (const step of steps) {
      await append(journal, wallet.file(step()))
      const before = await raise(journal, ref)
      await journal.checkpoint(ref)
      const after = await raise(journal, ref)
      expect(before?.state.holds).toEqual(wallet.state.holds)
      expect(after?.state.holds).toEqual(wallet.state.holds)
      wallet.state.epoch = after?.state.epoch ?? 0
    }
    expect(wallet.state.holds.size).toBe(1)
  })

  test('wallets that may be due are found by the bound, earliest first, and the bound moves on', async () => {
    const wallets = []
    for (const ttlMs of [3_000, 1_000, 2_000]) {
      const wallet = await newWallet(journal, `tenant-${ttlMs}`)
      wallet.now = START
      await append(journal, wallet.file(wallet.credit('c'), wallet.hold('h', 1, ttlMs)))
      wallets.push(wallet)
    }
    const [third, first, second] = wallets.map(({ ref }) => ref)
    const due = async (until: number, most = 10) => (await journal.due(until, most, null)).map(({ ref }) => ref)
    expect(await journal.due(START + 2_000, 10, null)).toEqual([
      { ref: first, tenant: 'tenant-1000', due: START + 1_000, epoch: wallets[1]?.state.epoch },
      { ref: second, tenant: 'tenant-2000', due: START + 2_000, epoch: wallets[2]?.state.epoch },
    ])
    expect(await due(START + 3_000)).toEqual([first, second, third])
    expect(await due(START + 3_000, 1)).toEqual([first])
    expect(await due(START + 999)).toEqual([])
    const { epoch, seq } = (wallets[1] as { state: WalletState }).state
    await journal.relax(first as string, epoch, seq - 1, 0)
    await journal.relax(first as string, epoch - 1, seq, 0)
    await journal.relax(newRef(), epoch, seq, 0)
    expect(await due(START + 1_000)).toEqual([first])
    await journal.relax(first as string, epoch, seq, START + 2_500)
    expect(await due(START + 3_000)).toEqual([second, first, third])
    await journal.relax(first as string, epoch, seq, 0)
    expect(await due(START + 3_000)).toEqual([second, third])
    const wallet = wallets[2] as Writer
    await append(journal, wallet.file(wallet.make({ kind: 'release', key: 'r', hold: 'h' })))
    wallet.now += 10_000
    expect(wallet.all({ kind: 'touch' })).toEqual([])
    await journal.relax(wallet.ref, wallet.state.epoch, wallet.state.seq, wallet.state.due)
    expect(await due(START + 3_000)).toEqual([third])
  })

  test('wallets that may be due are read page by page, those of one moment by their refs', async () => {
    const wallets: DueWallet[] = []
    for (const ttlMs of [2_000, 1_000, 1_000, 3_000, 1_000, 2_000]) {
      const wallet = await newWallet(journal)
      wallet.now = START
      await append(journal, wallet.file(wallet.credit('c'), wallet.hold('h', 1, ttlMs)))
      wallets.push({ ref: wallet.ref, tenant: 'test', due: START + ttlMs, epoch: wallet.state.epoch })
    }
    const inOrder = wallets.sort((a, b) => a.due - b.due || Buffer.compare(bytes(a), bytes(b)))
    const [, second, , fourth, , last] = inOrder as [DueWallet, DueWallet, DueWallet, DueWallet, DueWallet, DueWallet]
    for (const most of [1, 2, 4, 6]) {
      const pages: DueWallet[] = []
      for (let after: DueWallet | null = null; ; ) {
        const page: DueWallet[] = await journal.due(START + 3_000, most, after)
        pages.push(...page)
        after = page.at(-1) ?? null
        if (page.length < most) break
      }
      expect(pages).toEqual(inOrder)
    }
    expect(await journal.due(START + 3_000, 10, second)).toEqual(inOrder.slice(2))
    expect(await journal.due(START + 2_999, 10, second)).toEqual(inOrder.slice(2, 5))
    expect(await journal.due(START + 3_000, 2, fourth)).toEqual(inOrder.slice(4))
    // Behind places where nobody stands any more.
    expect(await journal.due(START + 3_000, 10, { due: START + 1_000, ref: 'f'.repeat(32) })).toEqual(inOrder.slice(3))
    expect(await journal.due(START + 3_000, 10, { due: START + 1_500, ref: fourth.ref })).toEqual(inOrder.slice(3))
    expect(await journal.due(START + 3_000, 10, last)).toEqual([])
    expect(await journal.due(START + 2_000, 10, last)).toEqual([])
    expect(await journal.due(START + 3_000, 10, { due: START + 9_000, ref: '0'.repeat(32) })).toEqual([])
  })
})

const bytes = ({ ref }: DueWallet) => Buffer.from(ref, 'hex')
