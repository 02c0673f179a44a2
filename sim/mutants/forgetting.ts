/** When Redis or Postgres forgets: memory durability, timelines, reconciling. */
import { DATABASE, ENGINE, LUA, type Mutant } from './mutant.js'

export const FORGETTING: readonly Mutant[] = [
  {
    rule: 'what was acknowledged from memory is decided again in the new life',
    without: 'a raise discards it, though Redis forgot nothing',
    patches: [{ file: LUA, find: 'pending[#pending + 1] = command_of(entry, mark_at(old, entry.seq))', replace: '' }],
    within: 300,
    from: 35,
  },
  {
    rule: 'what is decided again is decided at its own time',
    without:
      'a capture was acknowledged from memory, its hold runs out before it is loaded anew, and the capture is lost',
    patches: [{ file: LUA, find: 'math.max(c.at, w.at)', replace: 'math.max(c.at, w.clock)' }],
    within: 600,
    from: 1_240,
  },
  {
    rule: 'wallets used from memory come with their last results',
    without: 'a key that is repeated after a raise is decided a second time, and what rests on that is lost',
    patches: [{ file: `${ENGINE}/loader.ts`, find: 'recent: snapshot.recent,', replace: 'recent: [],' }],
    within: 1_000,
    from: 240,
  },
  {
    rule: 'what the journal will never take does not stay in Redis',
    without:
      'nobody uses the wallet any more: it shows a wrong balance, and what was acknowledged from memory behind it is never durable',
    patches: [
      {
        file: `${ENGINE}/appender.ts`,
        find: 'for (const { place } of refused) this.#context.reload(place)',
        replace: '',
      },
    ],
    within: 200,
  },
  {
    rule: 'what nobody waits for is loaded anew where others have gone on',
    without: 'Redis keeps a balance that is in no journal, and what was acknowledged from memory is never durable',
    patches: [
      {
        file: `${ENGINE}/appender.ts`,
        find: "return (type === 'epoch' || type === 'stale') && lane.active === 0",
        replace: 'return false && lane.active === 0',
      },
    ],
    within: 40,
    from: 1065,
  },
  {
    rule: 'no epoch is given twice',
    without:
      'Postgres was put back to before a raise, and gives its epoch to another state: what was decided on the one is accepted beside the other',
    patches: [
      {
        file: 'sim/postgres.ts',
        find: 'step: () => chance.integer(1, 10_000_000)',
        replace: 'step: () => chance.integer(1, 1)',
      },
    ],
    within: 100,
    from: 1_620,
  },
  {
    rule: 'wallets used from memory have no Postgres path',
    without: 'the Postgres path decides without knowing what Redis acknowledged',
    patches: [{ file: DATABASE, find: "if (row.memory) return 'memory'", replace: '' }],
    within: 600,
    from: 170,
  },
  {
    rule: 'timeline',
    without: 'a replica that lagged has missed a raise: two lives under one epoch, each refusing without the other',
    patches: [
      {
        file: DATABASE,
        find: 'Math.max(this.timeline * EPOCHS_A_TIMELINE, this.#standing.settled)',
        replace: 'Math.max(EPOCHS_A_TIMELINE, this.#standing.settled)',
      },
    ],
    within: 200,
  },
  {
    rule: 'a lost answer is no yes',
    without: 'a commit hung, its session was cut, the standby did not have it: acknowledged, and lost',
    patches: [
      {
        file: `${ENGINE}/appender.ts`,
        find: 'way.queue.unshift(...items)',
        replace: 'this.#waiting -= items.length; for (const item of items) this.#conclude(item, { type: "appended" })',
      },
    ],
    within: 50,
  },
  {
    rule: 'what was acknowledged is asked after',
    without: 'Postgres is put back to an earlier point, and everything goes on as if nothing had been',
    patches: [
      {
        file: DATABASE,
        find: 'if (epoch <= this.#standing.settled) return false',
        replace: 'if (epoch > 0) return false',
      },
    ],
    within: 60,
  },
  {
    rule: 'what was handed out is past',
    without: 'the operator has acted, and it is found again for ever',
    patches: [
      {
        file: DATABASE,
        find: 'this.#standing = { settled, stopped: null }',
        replace: 'this.#standing = { settled: 0, stopped: null }',
      },
    ],
    within: 60,
  },
]
