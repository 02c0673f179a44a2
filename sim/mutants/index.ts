/**
 * What the simulator must be able to find: for every rule of the protocol, and for the classic mistakes, a patch that leaves it
 * out. A rule whose absence shows in no schedule is either ornament or not tested.
 *
 * Lua is patched in the generated module (so without indentation), the simulated database where the rule lives in SQL.
 */
import { AUDITS, LOOK_ONCE } from './audits.js'
import { FORGETTING } from './forgetting.js'
import { HOLDS } from './holds.js'
import { LUA, type Mutant } from './mutant.js'
import { PAYMENTS } from './payments.js'
import { OWN_ENTRIES_ONLY, PROTOCOL } from './protocol.js'
import { STOCK } from './stock.js'
import { TRANSFERS } from './transfers.js'

export type { Mutant } from './mutant.js'

export const MUTANTS: readonly Mutant[] = [
  ...PROTOCOL,
  ...HOLDS,
  ...FORGETTING,
  ...TRANSFERS,
  ...STOCK,
  ...PAYMENTS,
  ...AUDITS,
]

/** Changes that cost time and nothing else: the protocol must hold without them. */
export const HARMLESS: readonly Pick<Mutant, 'rule' | 'patches'>[] = [
  {
    rule: 'the lease keeps others from loading at once',
    patches: [{ file: LUA, find: "lease = 'busy'", replace: "lease = 'leased'" }],
  },
  {
    rule: 'there is room for a few entries before the ring must grow',
    patches: [{ file: LUA, find: 'local RING = 16', replace: 'local RING = 1' }],
  },
  {
    rule: 'many refunds are noted before they are swept away',
    patches: [{ file: LUA, find: 'local REFUNDS_MAX = 64', replace: 'local REFUNDS_MAX = 1' }],
  },
  { rule: 'processes hand on what others have decided', patches: OWN_ENTRIES_ONLY },
  { rule: 'an audit looks again before it calls something wrong', patches: LOOK_ONCE },
]
