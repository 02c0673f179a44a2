/** Purchases that are paid out of a wallet. */
import { ENGINE, LUA, type Mutant } from './mutant.js'

export const PAYMENTS: readonly Mutant[] = [
  {
    rule: "a purchase's hold does not run out by the clock",
    without: 'the money is back, and what it was held for is sold all the same',
    patches: [
      {
        file: `${ENGINE}/purchase-commands.ts`,
        find: 'const HOLD_TTL_MS = 100 * 365 * 24 * 60 * 60 * 1_000',
        replace: 'const HOLD_TTL_MS = 1_000',
      },
    ],
    within: 200,
  },
  {
    rule: 'a purchase sells what its price was held for',
    without: 'what came into the checkout in between goes along for nothing',
    patches: [
      { file: LUA, find: 'if order.held and not pays_for(order, checkout.lines) then', replace: 'if false then' },
    ],
    within: 400,
    from: 114,
  },
]
