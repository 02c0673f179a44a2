import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { check } from '../checker.js'
import type { Answer, Seen } from '../history.js'
import type { Remembered } from '../journal.js'
import { Place } from '../places.js'
import { tried } from './support/trials.js'

/** A trial to which nothing was done; then somebody lies about it. */
let place: Place
let journal: Remembered
let history: Seen[]

beforeAll(async () => {
  place = await Place.start('single')
  const verdict = await tried(place, (trial) => trial.underLoad(400))
  journal = verdict.journal
  history = [...verdict.history]
})
afterAll(() => place?.stop())

type Yes = Extract<Answer, { type: 'yes' }>

const acknowledged = (kind: string): Seen => {
  const found = history.find(({ asked, answer }) => asked.kind === kind && answer?.type === 'yes' && !answer.replayed)
  return found as Seen
}

/** The history with another answer to one call. */
function told(seen: Seen, answer: Answer | null): Seen[] {
  return history.map((one) => (one === seen ? { ...one, answer } : one))
}

/** The journal with other entries of one wallet. */
function remembered(
  wallet: string,
  change: (wallet: Remembered['wallets'][number]) => Remembered['wallets'][number],
): Remembered {
  return { ...journal, wallets: journal.wallets.map((one) => (one.row.id === wallet ? change(one) : one)) }
}

describe('the checker', () => {
  it('finds nothing where nothing is', () => {
    expect(check(journal, history)).toEqual([])
  })

  it('accepts that nobody knows', () => {
    expect(check(journal, told(acknowledged('debit'), null))).toEqual([])
    expect(check(journal, told(acknowledged('hold'), { type: 'unknown', code: 'timeout' }))).toEqual([])
  })

  it.each(['credit', 'debit', 'hold', 'settle', 'transfer', 'meter', 'tick'])(
    'finds that an acknowledged %s is not in the journal as it was told',
    (kind) => {
      const seen = acknowledged(kind)
      const answer = seen.answer as Yes
      const [entry, ...others] = answer.entries as [Yes['entries'][number]]
      for (const lie of [{ hash: 'ab'.repeat(20) }, { available: entry.available + 1 }, { seq: entry.seq + 1 }]) {
        const problems = check(journal, told(seen, { ...answer, entries: [{ ...entry, ...lie }, ...others] }))
        expect(problems.join('\n')).toContain(`${seen.asked.key} (${kind}) was acknowledged, and that entry is not`)
      }
    },
  )

  it('finds that something acknowledged is gone', () => {
    const { asked } = acknowledged('credit')
    const without = remembered(asked.wallet, (wallet) => ({
      ...wallet,
      entries: wallet.entries.filter(({ key }) => key !== asked.key),
    }))
    expect(check(without, history).join('\n')).toMatch(new RegExp(`${asked.key} .*is not in the journal`))
  })

  it('finds that something was done and refused', () => {
    const seen = acknowledged('debit')
    const no = { type: 'no', code: 'insufficient_funds', facts: { available: 0 } } as const
    expect(check(journal, told(seen, no)).join('\n')).toContain(
      'was refused (insufficient_funds) and is in the journal',
    )
    expect(check(journal, [...history, { ...seen, answer: no }]).join('\n')).toContain('was done and refused')
  })

  it('finds a refusal that no moment explains', () => {
    const { asked, startedAt, endedAt, worker } = acknowledged('credit')
    const never = { kind: 'debit', wallet: asked.wallet, key: 'never', amount: 1 } as const
    const answer = { type: 'no', code: 'insufficient_funds', facts: { available: 1_000_000 } } as const
    const problems = check(journal, [...history, { worker, asked: never, startedAt, endedAt, answer }])
    expect(problems.join('\n')).toMatch(/never .*nothing between seq \d+ and \d+ refuses it so/)
  })

  it('finds that one thing was done for the first time twice', () => {
    expect(check(journal, [...history, acknowledged('hold')]).join('\n')).toContain('for the first time more than once')
  })

  it('finds a read that was behind, and one of a balance that never was', () => {
    const isRead = ({ asked, answer }: Seen) => asked.kind === 'read' && answer?.type === 'read' && answer.seq > 5
    const seen = history.findLast((one) => isRead(one) && one.asked.kind === 'read' && !one.asked.pending) as Seen
    const answer = seen.answer as Extract<Answer, { type: 'read' }>
    expect(check(journal, told(seen, { ...answer, seq: 1 })).join('\n')).toContain('had been acknowledged before')
    expect(check(journal, told(seen, { ...answer, available: -1 })).join('\n')).toContain('never was committed')
  })

  it('finds a row that is not what its journal leads to, a hold left open, and books that do not sum to zero', () => {
    const { asked } = acknowledged('settle')
    const rich = remembered(asked.wallet, (wallet) => ({
      ...wallet,
      row: { ...wallet.row, available: wallet.row.available + 1 },
    }))
    expect(check(rich, history).join('\n')).toContain('the row is not what its journal leads to')
    const cut = remembered(asked.wallet, (wallet) => {
      const hold = wallet.entries.find(({ kind }) => kind === 'hold')
      return { ...wallet, entries: wallet.entries.slice(0, hold?.seq) }
    })
    expect(check(cut, []).join('\n')).toContain('a hold never ended')
    expect(check({ ...journal, unbalanced: ['default usd: 5'] }, history)).toEqual([
      'the books do not sum to zero: default usd: 5',
    ])
    expect(check({ ...journal, openTransfers: 1 }, history).join('\n')).toContain('1 transfers were never finished')
  })
})
