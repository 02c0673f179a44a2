import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Witness } from '../../src/journal/index.js'
import { genesisHash } from '../../src/machine/index.js'
import { append, newRef, newWallet, raise, SUBJECTS, type Subject, type Writer } from './journals.js'

const STOPPED = { code: 'reconcile_required', outcome: 'not_executed', retryable: true }

describe.each(Object.keys(SUBJECTS))('how the journal of %s stands', (name) => {
  let subject: Subject
  let journal: Subject['journal']
  let wallet: Writer
  let there: Witness
  let missing: Witness

  beforeEach(async () => {
    subject = await (SUBJECTS[name] as () => Promise<Subject>)()
    journal = subject.journal
    wallet = await newWallet(journal)
    await append(journal, wallet.file(wallet.credit('a')))
    const { ref, state } = wallet
    there = { ref, epoch: state.epoch, seq: state.seq, hash: state.head }
    missing = { ...there, seq: there.seq + 1, hash: 'f'.repeat(40) }
  })
  afterEach(() => subject.close())

  test('what is there is told from what is missing: an entry, a wallet, and one of another chain', async () => {
    const { ref, epoch } = there
    const opened = { ref, epoch, seq: 0, hash: genesisHash(ref, 'EUR') }
    const unopened = { ...opened, ref: newRef() }
    const forked = { ...there, hash: 'e'.repeat(40) }
    const standing = await journal.prove([there, missing, opened, unopened, forked])
    expect(standing).toMatchObject({ floor: 1_000_000_000_000, settled: 0, stopped: null })
    expect(standing.missing).toEqual([missing, unopened, forked])
  })

  test('a witness of an earlier timeline counts all the same', async () => {
    await subject.leaveTimeline()
    expect((await journal.prove([there, missing])).missing).toEqual([missing])
  })

  test('a stop refuses whatever decides, and lets whatever reads go on', async () => {
    await journal.stop(missing.epoch, 'first')
    await journal.stop(missing.epoch, 'second')
    const { ref, epoch, seq, hash } = there
    expect(await journal.prove([])).toMatchObject({ stopped: { at: expect.any(Number), because: 'first' } })
    await expect(journal.append(wallet.file(wallet.credit('b')))).rejects.toMatchObject(STOPPED)
    await expect(raise(journal, ref)).rejects.toMatchObject(STOPPED)
    await expect(journal.takeOver(ref)).rejects.toMatchObject(STOPPED)
    const refusal = { ref, epoch, seq, head: hash, key: 'x', hold: '' }
    await expect(journal.confirm([refusal])).rejects.toMatchObject(STOPPED)
    const other = newRef()
    const head = genesisHash(other, 'EUR')
    const request = { ref: other, tenant: 'test', id: 'o', currency: 'EUR', creditLimit: 0, metadata: '', head }
    await expect(journal.open(request)).rejects.toMatchObject(STOPPED)
    expect(await journal.read([ref])).toHaveLength(1)
    expect(await journal.find([{ ref, key: 'a' }])).toMatchObject([{ seq }])
  })

  test('lifted, it goes on above every epoch that was used, and what was missing is past', async () => {
    const late = { ...missing, epoch: missing.epoch + 5_000 }
    await journal.stop(missing.epoch, 'why')
    await journal.stop(late.epoch, 'why')
    const at = (await journal.prove([])).stopped?.at as number
    await journal.quiesce()
    expect(await journal.lift(0, at - 1)).toBeNull()
    const floor = await journal.lift(late.epoch + 7, at)
    expect(floor).toBe(late.epoch + 7 + 10_000_000_000)
    expect(await journal.lift(0, at)).toBeNull()
    expect(await journal.prove([missing, late])).toMatchObject({ floor, settled: floor, stopped: null, missing: [] })
    // Who comes too late with it stops nothing.
    await journal.stop(late.epoch, 'late')
    expect(await journal.prove([])).toMatchObject({ stopped: null })
    expect(await append(journal, wallet.file(wallet.credit('b')))).toMatchObject([{ type: 'epoch' }])
    const raised = await raise(journal, wallet.ref, { known: missing })
    expect(raised).toMatchObject({ holds: true, state: { epoch: (floor as number) + 1, seq: there.seq } })
  })

  test('a raise tells whether the journal holds what Redis knows to be in it', async () => {
    expect(await raise(journal, wallet.ref, { known: there })).toMatchObject({ holds: true })
    expect(await raise(journal, wallet.ref)).toMatchObject({ holds: true })
    expect(await raise(journal, wallet.ref, { known: missing })).toMatchObject({ holds: false })
  })
})
