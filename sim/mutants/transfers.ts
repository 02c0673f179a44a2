/** Transfers. */
import { ENGINE, type Mutant } from './mutant.js'

export const TRANSFERS: readonly Mutant[] = [
  {
    rule: 'a transfer is written down first',
    without: 'its process dies, and the hold stays for ever',
    patches: [
      {
        file: `${ENGINE}/intended.ts`,
        find: 'const written = await this.begin(asked, patience)',
        replace:
          'const written = { attempt: 1, fresh: true, sourceCurrency: "x", targetCurrency: "x", currency: "x", ...asked } as never as B',
      },
    ],
    within: 50,
  },
  {
    rule: 'a transfer has one key on its target',
    without: 'who finishes it lets it arrive again',
    patches: [
      {
        file: `${ENGINE}/transfer-commands.ts`,
        find: "const ACCOUNT = 'transfers'",
        replace: "const ACCOUNT = 'transfers'\nlet credits = 0",
      },
      {
        file: `${ENGINE}/transfer-commands.ts`,
        find: "kind: 'credit', key: targetKey(source, key)",
        replace: "kind: 'credit', key: targetKey(source, key) + ++credits",
      },
    ],
    within: 50,
  },
  {
    rule: "the target's key is used up before the source is released",
    without: 'one who is at work on the same transfer lets it arrive after all',
    patches: [
      {
        file: `${ENGINE}/intended.ts`,
        find: 'return this.void(intent, error, patience)',
        replace: "return this.#plan.told(error, 'target')",
      },
    ],
    within: 1_000,
    from: 764,
  },
  {
    rule: "a transfer's hold does not run out",
    without: 'what has arrived goes back as well',
    patches: [
      {
        file: `${ENGINE}/transfer-commands.ts`,
        find: 'const HOLD_TTL_MS = 100 * 365 * 24 * 60 * 60 * 1_000',
        replace: 'const HOLD_TTL_MS = 1_000',
      },
    ],
    within: 100,
  },
]
