import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Refusal } from '../../src/journal/index.js'
import { append, load, newRef, newWallet, SUBJECTS, type Subject, type Writer } from './journals.js'

describe.each(Object.keys(SUBJECTS))('confirming a refusal with the journal of %s', (name) => {
  let subject: Subject

  beforeAll(async () => {
    subject = await (SUBJECTS[name] as () => Promise<Subject>)()
  })
  afterAll(() => subject.close())

  /** A refusal that rests on what the writer knows now. */
  function refusal({ ref, state }: Writer, changes: Partial<Refusal> = {}): Refusal {
    return { ref, epoch: state.epoch, seq: state.seq, head: state.head, key: 'refused', hold: '', ...changes }
  }

  test('stands on the head, on any entry before it, and on the start of the chain', async () => {
    const wallet = await newWallet(subject.journal)
    const { epoch } = wallet.state
    const start = refusal(wallet)
    const stands = { stands: true, epoch, owner: null, seen: false, hold: 'unknown' }
    expect(await subject.journal.confirm([start])).toEqual([stands])
    await append(subject.journal, wallet.file(wallet.credit('a')))
    const older = refusal(wallet)
    await append(subject.journal, wallet.file(wallet.credit('b'), wallet.credit('c')))
    expect(await subject.journal.confirm([start, older, refusal(wallet)])).toEqual([stands, stands, stands])
  })

  test('does not stand on what the journal does not hold', async () => {
    const wallet = await newWallet(subject.journal)
    const { epoch } = wallet.state
    const falls = { stands: false, epoch, owner: 'redis', seen: false, hold: 'unknown' }
    await append(subject.journal, wallet.file(wallet.credit('a')))
    const other = wallet.fork()
    await append(subject.journal, wallet.file(wallet.credit('b')))
    other.credit('x')
    const forked = refusal(other)
    wallet.credit('pending')
    const ahead = refusal(wallet)
    const refusals = [forked, ahead, refusal(wallet, { seq: 0, head: '0'.repeat(40) }), refusal(wallet, { seq: 1 })]
    expect(await subject.journal.confirm(refusals)).toEqual([falls, falls, falls, falls])
  })

  test('does not stand under another epoch, older or newer, and says which one is current', async () => {
    const wallet = await newWallet(subject.journal)
    await append(subject.journal, wallet.file(wallet.credit('a')))
    const old = refusal(wallet)
    const raised = await load(subject.journal, wallet.ref)
    const { epoch } = raised.state
    const refusals = [old, refusal(raised), refusal(raised, { epoch: epoch + 1 })]
    expect(await subject.journal.confirm(refusals)).toMatchObject([
      { stands: false, epoch },
      { stands: true, epoch },
      { stands: false, epoch },
    ])
  })

  test('tells that the key was seen, in this wallet alone', async () => {
    const [wallet, other] = [await newWallet(subject.journal), await newWallet(subject.journal)]
    await append(subject.journal, [...wallet.file(wallet.credit('k')), ...other.file(other.credit('l'))])
    const keys = ['k', 'l', '', 'K']
    const confirmed = await subject.journal.confirm(keys.map((key) => refusal(wallet, { key })))
    expect(confirmed).toMatchObject([true, false, false, false].map((seen) => ({ seen })))
  })

  test('tells what became of a hold', async () => {
    const wallet = await newWallet(subject.journal)
    const entries = [
      wallet.credit('c'),
      wallet.hold('released'),
      wallet.hold('expired', 1, 100),
      wallet.hold('settled'),
    ]
    entries.push(wallet.make({ kind: 'release', key: 'r', hold: 'released' }))
    wallet.now += 1_000
    entries.push(...wallet.all({ kind: 'settle', key: 's', hold: 'settled', amount: 1 }))
    await append(subject.journal, wallet.file(...entries))
    const holds = ['released', 'expired', 'settled', 'never', 'c', '']
    const confirmed = await subject.journal.confirm(holds.map((hold) => refusal(wallet, { hold })))
    const told = ['closed', 'expired', 'closed', 'unknown', 'unknown', 'unknown']
    expect(confirmed).toMatchObject(told.map((hold) => ({ hold })))
  })

  test('answers many at once in order, those of wallets that do not exist too', async () => {
    const wallet = await newWallet(subject.journal)
    await append(subject.journal, wallet.file(wallet.credit('k')))
    const answers = await subject.journal.confirm([
      refusal(wallet, { key: 'k' }),
      refusal(wallet, { ref: newRef() }),
      refusal(wallet, { seq: 9 }),
      refusal(wallet),
    ])
    const { epoch } = wallet.state
    expect(answers).toEqual([
      { stands: true, epoch, owner: null, seen: true, hold: 'unknown' },
      { stands: false, epoch: 0, owner: null, seen: false, hold: 'unknown' },
      { stands: false, epoch, owner: 'redis', seen: false, hold: 'unknown' },
      { stands: true, epoch, owner: null, seen: false, hold: 'unknown' },
    ])
    expect(await subject.journal.confirm([])).toEqual([])
  })

  /** A wallet of the Postgres path. */
  async function newOwned(): Promise<Writer> {
    const wallet = await newWallet(subject.journal)
    const taken = await subject.journal.takeOver(wallet.ref)
    if (!taken || typeof taken === 'string') throw new Error('not taken over')
    wallet.state = taken.state
    return wallet
  }

  test('of a row that somebody keeps locked nothing is known now, and of the others all', async () => {
    const { journal } = subject
    const [locked, free] = [await newOwned(), await newOwned()]
    const wallet = await newWallet(journal)
    const refusals = [refusal(locked), refusal(free), refusal(wallet), refusal(locked, { key: 'another' })]
    const answers = await subject.whileLocked(locked.ref, () => journal.confirm(refusals))
    expect(answers).toMatchObject(['locked', { stands: true }, { stands: true }, 'locked'])
    const alone = await subject.whileLocked(locked.ref, () => journal.confirm(refusals.slice(0, 1)))
    expect(alone).toEqual(['locked'])
    expect(await journal.confirm(refusals)).toMatchObject(refusals.map(() => ({ stands: true, seen: false })))
  })

  test('what is so whoever has the row is told all the same: the key was seen, the epoch is another', async () => {
    const { journal } = subject
    const wallet = await newOwned()
    const { epoch } = wallet.state
    await append(journal, wallet.file(wallet.credit('k')))
    const refusals = [refusal(wallet, { key: 'k' }), refusal(wallet, { epoch: epoch - 1 }), refusal(wallet)]
    const answers = await subject.whileLocked(wallet.ref, () => journal.confirm(refusals))
    expect(answers).toMatchObject([
      { stands: false, seen: true },
      { stands: false, epoch, owner: 'postgres' },
      'locked',
    ])
  })

  test('a row that Redis decides for is not waited for', async () => {
    const wallet = await newWallet(subject.journal)
    const answers = await subject.whileLocked(wallet.ref, () => subject.journal.confirm([refusal(wallet)]))
    expect(answers).toMatchObject([{ stands: true }])
  })

  test('nothing stands that another timeline of the server has decided', async () => {
    const wallet = await newWallet(subject.journal)
    await append(subject.journal, wallet.file(wallet.credit('a')))
    await subject.leaveTimeline()
    const [row] = await subject.journal.read([wallet.ref])
    const epoch = row?.epoch ?? 0
    expect(await subject.journal.confirm([refusal(wallet, { epoch })])).toMatchObject([{ stands: false, epoch }])
    wallet.state.epoch = epoch
    expect(await append(subject.journal, wallet.file(wallet.credit('b')))).toEqual([
      { type: 'epoch', epoch, owner: 'redis' },
    ])
    const raised = await load(subject.journal, wallet.ref)
    expect(await subject.journal.confirm([refusal(raised)])).toMatchObject([{ stands: true }])
    expect(await append(subject.journal, raised.file(raised.credit('b')))).toEqual([{ type: 'appended' }])
  })
})
