/** Expiry, and sessions. */
import { DATABASE, LUA, type Mutant } from './mutant.js'

/** Both twins are patched alike: what makes the difference must be seen by what the checker knows of sessions, not by comparing them. */
const DECIDE = 'packages/holdfast/src/machine/decide.ts'

const METER = 'packages/holdfast/src/machine/meter.ts'

export const HOLDS: readonly Mutant[] = [
  {
    rule: 'expiry returns the money',
    without: 'a TTL on a key: the hold is gone, its money stays reserved',
    patches: [
      {
        file: LUA,
        find: "file(w, now, c, give_back('expire', hold))",
        replace: "remove(w, 'h:' .. hold.id); w.open = w.open - 1",
      },
    ],
    within: 50,
  },
  {
    rule: 'a settle meets the expiry first',
    without: 'settled and expired: the money comes back twice',
    patches: [{ file: LUA, find: 'if not expire_due(w, now) then', replace: 'if false then' }],
    within: 50,
  },
  {
    rule: 'the bound of the next expiry moves only with the state it belongs to',
    without: 'a hold never expires',
    patches: [
      {
        file: DATABASE,
        find: 'if (row?.epoch === epoch && row.seq === seq) row.due = due',
        replace: 'if (row) row.due = due',
      },
    ],
    within: 300,
    from: 2_015,
  },
  {
    rule: 'an extension is counted once',
    without: 'what a tick sets aside is in the hold twice, and comes back twice',
    patches: [
      { file: LUA, find: 'hold.left = hold.left + more - due', replace: 'hold.left = hold.left + 2 * more - due' },
      { file: DECIDE, find: 'left: hold.left + more - charge,', replace: 'left: hold.left + 2 * more - charge,' },
    ],
    within: 50,
  },
  {
    rule: 'ticks that cross the line together extend once',
    without: 'each of them sets another stretch aside',
    patches: [
      {
        file: LUA,
        find: 'local more = math.min(wanted(meter, hold.amount, used) - hold.amount, spare)',
        replace:
          'local more = math.min(wanted(meter, meter.stretch, used) > meter.stretch and meter.stretch or 0, spare)',
      },
      {
        file: METER,
        find: 'const more = Math.min(wanted(meter, hold.amount, used) - hold.amount, spendable)',
        replace:
          'const more = Math.min(wanted(meter, meter.stretch, used) > meter.stretch ? meter.stretch : 0, spendable)',
      },
    ],
    within: 50,
  },
  {
    rule: 'a tick charges what was not charged before',
    without: 'a repeated tick bills again',
    patches: [
      {
        file: LUA,
        find: 'local due = math.min(used - hold.captured, hold.left + more)',
        replace: 'local due = math.min(used, hold.left + more)',
      },
      {
        file: METER,
        find: 'return { more, charge: Math.min(used - hold.captured, hold.left + more) }',
        replace: 'return { more, charge: Math.min(used, hold.left + more) }',
      },
    ],
    within: 50,
  },
]
