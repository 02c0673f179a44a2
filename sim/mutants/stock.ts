/** The stock of sales. */
import { ENGINE, LUA, type Mutant } from './mutant.js'

export const STOCK: readonly Mutant[] = [
  {
    rule: 'every key of a sale carries the epoch',
    without: 'the stock is evicted alone and reads as if nothing were sold',
    patches: [{ file: LUA, find: 'if values[#fields] ~= digits(w.epoch) then', replace: 'if false then' }],
    within: 200,
    from: 170,
  },
  {
    rule: 'what lies in a checkout comes back with it',
    without: 'a checkout runs out, and its items can never be bought again',
    patches: [
      {
        file: LUA,
        find: "local before = checkout.mode == 'reserve' and checkout.lines or {}",
        replace: "local before = checkout.mode == 'reserve' and kind ~= 'expire' and checkout.lines or {}",
      },
    ],
    within: 50,
    from: 18,
  },
  {
    rule: 'the limit of a user is taken in the step that it is checked in',
    without: 'somebody who asks again and again has more than the limit',
    patches: [{ file: LUA, find: 'taken = taken + total(order.lines)', replace: 'taken = taken + 0' }],
    within: 50,
  },
  {
    rule: 'a move is finished under the same key',
    without: 'who finds it takes once more what was given once',
    patches: [
      {
        file: `${ENGINE}/moves.ts`,
        find: "const COUNTER = 'stock'",
        replace: "const COUNTER = 'stock'\nlet takes = 0",
      },
      { file: `${ENGINE}/moves.ts`, find: "kind: 'take', key:", replace: "kind: 'take', key: ++takes +" },
    ],
    within: 300,
    from: 310,
  },
  {
    rule: 'what is on its way between buckets is not sold out',
    without: 'somebody is refused while what is wanted is in no bucket for a moment',
    patches: [{ file: `${ENGINE}/moves.ts`, find: 'return !arrived && open.length === 0', replace: 'return true' }],
    within: 300,
    from: 485,
  },
  {
    rule: 'what refused checkouts rest on is asked about',
    without: 'somebody is told no by a Redis whose time is over',
    patches: [{ file: `${ENGINE}/grounds.ts`, find: 'if (stands) {', replace: 'if (stands || epoch > 0) {' }],
    within: 200,
    from: 435,
  },
]
