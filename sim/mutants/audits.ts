/** The auditor, which must not raise false alarms. */
import type { Mutant } from './mutant.js'

const AUDIT = 'packages/holdfast/src/audit'

/** A second look hides most of what a wrong comparison makes up. */
export const LOOK_ONCE = [
  { file: `${AUDIT}/hot-audit.ts`, find: 'const LOOKS = 3', replace: 'const LOOKS = 1' },
  {
    file: `${AUDIT}/hot-audit.ts`,
    find: 'const { differences } = agreed(suspect, again)',
    replace: 'const { differences } = again ? suspect : suspect',
  },
]

export const AUDITS: readonly Mutant[] = [
  {
    rule: 'an audit knows what came between its two looks',
    without:
      'what was appended after the journal was read, and before Redis was, passes for something that Postgres has lost',
    patches: [
      {
        file: `${AUDIT}/hot.ts`,
        find: "if (core.acked > state.seq && between === null) return { type: 'wanting', after: state.seq, upTo: core.acked }",
        replace: '',
      },
      ...LOOK_ONCE,
    ],
    within: 100,
    from: 30,
  },
  {
    rule: 'an audit takes a state that was loaded meanwhile for what it is',
    without: 'an epoch that was raised between its two looks passes for one that Postgres has lost',
    patches: [{ file: `${AUDIT}/hot-audit.ts`, find: 'if (expected >= found) continue', replace: '' }, ...LOOK_ONCE],
    within: 60,
  },
  {
    rule: 'an audit follows a sale while it reads its stock',
    without: 'what was bought meanwhile passes for something that Redis made up',
    patches: [
      {
        file: `${AUDIT}/stock.ts`,
        find: 'return this.#take(pending.filter(({ seq }) => seq > this.#seq)) && this.#seq === core.seq',
        replace: 'return true',
      },
      ...LOOK_ONCE,
    ],
    within: 60,
  },
]
