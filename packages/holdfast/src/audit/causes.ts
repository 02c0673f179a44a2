/**
 * The one table of what an audit can find. `decides`: what says how it should be, and so what a repair goes by; `nothing` where the
 * journal itself is damaged, or lacks what Redis was told is in it: that is for a person. `docs/operating/audit.md` lists the same.
 */
export const CAUSES = {
  hot_state_differs: {
    decides: 'journal',
    meaning: 'A number of the state in Redis is not what the journal leads to',
  },
  hot_holds_sum: { decides: 'journal', meaning: 'What is reserved in Redis is not the sum of its open holds' },
  hot_hold_missing: { decides: 'journal', meaning: 'A hold is open by the journal, and Redis does not have it' },
  hot_hold_unknown: { decides: 'journal', meaning: 'Redis has a hold that is not open by the journal' },
  hot_hold_differs: { decides: 'journal', meaning: 'A number of an open hold in Redis is not what the journal says' },
  hot_stock_differs: {
    decides: 'journal',
    meaning: 'What Redis has of the stock of a sale, its buyers or its checkouts is not what the journal leads to',
  },
  hot_entry_damaged: {
    decides: 'journal',
    meaning: 'An entry that waits in Redis for the journal is missing, or not what its hash is of',
  },
  hot_unreadable: { decides: 'journal', meaning: "Something stands in Redis in a wallet's place that is no wallet" },
  hot_behind: {
    decides: 'journal',
    meaning: 'Redis has an older state than the journal, and takes it for the present',
  },
  hot_ahead: {
    decides: 'nothing',
    meaning: 'Redis was told that the journal has entries that it does not have: Postgres has lost some',
  },
  hot_wallet_unknown: { decides: 'nothing', meaning: 'Redis has a wallet that Postgres does not know' },
  pending_too_old: {
    decides: 'journal',
    meaning: 'An entry waits in Redis for the journal, and nobody brings it there',
  },
  hold_overdue: { decides: 'journal', meaning: 'A hold has run out, and nobody has let it expire' },
  row_differs: { decides: 'journal', meaning: "A wallet's row is not what its journal leads to" },
  row_missing: { decides: 'nothing', meaning: 'A wallet has no row any more' },
  holds_differ: {
    decides: 'journal',
    meaning: 'What would be loaded as open holds is not what the journal says: the checkpoint is wrong',
  },
  journal_gap: { decides: 'nothing', meaning: 'An entry is missing between others' },
  journal_short: { decides: 'nothing', meaning: 'The journal ends before where it ended once' },
  journal_duplicate: { decides: 'nothing', meaning: 'A seq is in the journal twice' },
  journal_hash: {
    decides: 'nothing',
    meaning: 'An entry is not what its hash is of, or does not rest on the one before it',
  },
  journal_rewritten: {
    decides: 'nothing',
    meaning: 'The journal is sound, and is another one than was verified before',
  },
  journal_order: {
    decides: 'nothing',
    meaning: 'An entry goes back in time, comes from the future, or is of an older epoch than the one before it',
  },
  journal_arithmetic: {
    decides: 'nothing',
    meaning: 'The balances after an entry are not those before it and its change',
  },
  journal_conservation: {
    decides: 'nothing',
    meaning: 'An entry makes or destroys money: its change is not what its kind may do',
  },
  journal_stock: { decides: 'nothing', meaning: 'An entry of a sale does not say what it did to the stock' },
  journal_limit: { decides: 'nothing', meaning: 'A balance is below its credit limit' },
  books_unbalanced: {
    decides: 'nothing',
    meaning: 'The wallets and the accounts on the other side do not sum up to zero',
  },
} as const satisfies Record<string, { decides: 'journal' | 'nothing'; meaning: string }>

export type Cause = keyof typeof CAUSES

/** What somebody else may read: no ids of callers in it. */
export type FindingValue = string | number | null

/** One thing that is not as it should be. */
export interface Finding {
  readonly cause: Cause
  readonly shard: number
  readonly tenant: string
  /** What stands for the wallet where its id must not: the key of its row in Postgres, and part of its key in Redis. Empty for books. */
  readonly ref: string
  /** Which number it is about, where there are several. */
  readonly field?: string
  /** The entry it is about; for a hold the one that made it. */
  readonly seq?: number
  readonly expected: FindingValue
  readonly found: FindingValue
  /** `reported`: nothing was changed, because nothing could decide, or nobody was allowed to. `failed`: a repair was tried. */
  readonly action: 'repaired' | 'reported' | 'failed'
}

/** What is wrong with a wallet, before anybody has done anything about it. */
export type Difference = Pick<Finding, 'cause' | 'field' | 'seq' | 'expected' | 'found'> & {
  /** Callers' own, so it leaves this process in no finding. */
  readonly hold?: string
}

/** What would be loaded as open holds can't even be read. */
export const DAMAGED_CHECKPOINT: Difference = {
  cause: 'holds_differ',
  field: 'checkpoint',
  expected: 'open holds',
  found: 'something else',
}
