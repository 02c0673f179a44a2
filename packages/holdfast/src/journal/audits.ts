import type { Entry, HoldState, WalletState, WalletStatus } from '../machine/index.js'

/** What a wallet's row says of its state. */
export interface AuditedRow {
  readonly epoch: number
  readonly seq: number
  readonly head: string
  readonly at: number
  readonly available: number
  readonly reserved: number
  readonly creditLimit: number
  readonly status: WalletStatus
  readonly due: number
  readonly since: number
}

/** A hold, and the seq of the entry that made it. */
export interface VerifiedHold extends HoldState {
  madeSeq: number
}

/** The state that a journal leads to, as far as it was verified. */
export interface Verified {
  seq: number
  head: string
  epoch: number
  at: number
  available: number
  reserved: number
  creditLimit: number
  status: WalletStatus
  holds: Map<string, VerifiedHold>
}

/** A wallet that is not as it was when it was last verified: used since, or never looked at, or altered. */
export interface AuditedWallet {
  readonly ref: string
  readonly tenant: string
  readonly currency: string
  /** What its chain begins with; when it was opened, and with which limit. */
  readonly genesis: string
  readonly openedAt: number
  readonly initialLimit: number
  /** Null: there are entries, or there were, and no row. */
  readonly row: AuditedRow | null
  /** The last seq that the journal has, of the same moment as the row. */
  readonly lastSeq: number
  readonly verified: Verified | null
  /** When it was last verified from the beginning, Postgres's clock; 0: never. */
  readonly fullAt: number
}

export interface AuditPage {
  /** How many wallets were looked at, and the last of them; null: there are no more. */
  readonly wallets: number
  readonly last: string | null
  /** Postgres's clock, ms. */
  readonly clock: number
  readonly others: readonly AuditedWallet[]
  /** Money in those that are as they were when verified. */
  readonly same: readonly { readonly tenant: string; readonly currency: string; readonly money: bigint }[]
}

/** A wallet as it would be loaded now. */
export interface LoadableState {
  readonly ref: string
  readonly memory: boolean
  /** Postgres's clock, ms. */
  readonly clock: number
  readonly state: WalletState
  /** Its checkpoint can't be read, so its open holds are not known. */
  readonly damaged?: boolean
}

export interface Stretch {
  readonly ref: string
  /** Behind this seq, up to that one. */
  readonly after: number
  readonly upTo: number
}

export interface Remembered {
  readonly ref: string
  readonly verified: Verified
  /** Its journal was read from the beginning. */
  readonly full: boolean
}

export interface RebuildPage {
  readonly wallets: number
  readonly last: string | null
  readonly wanted: readonly { readonly ref: string; readonly tenant: string; readonly epoch: number }[]
}

/** What an audit has found, as it is kept. See src/audit/causes.ts. */
export interface FoundRow {
  readonly shard: number
  readonly tenant: string
  readonly ref: string
  readonly cause: string
  readonly field?: string
  readonly seq?: number
  readonly expected: string | number | null
  readonly found: string | number | null
  readonly action: string
}

/** And how often it was found, and when first and last: Postgres's clock, ms. */
export interface KeptRow extends FoundRow {
  readonly id: number
  /** Null: there is no such wallet, or it is about none. */
  readonly wallet: string | null
  readonly firstAt: number
  readonly lastAt: number
  readonly times: number
}

export interface KeptQuestion {
  readonly tenant: string
  readonly after: number
  readonly prefix: string
  readonly since: number
  readonly most: number
}

/** What the auditor asks of the journal. Every call is one statement. The simulator has one of its own. */
export interface Audits {
  /** Wallets of a shard behind `after`, by ref. `overdueBefore` and `fullBefore` are of Postgres's clock. */
  page(shard: number, after: string, most: number, bounds: AuditBounds): Promise<AuditPage>
  /** Entries as they stand in the journal, at most so many of each stretch. `prev` is left empty: it is not stored. */
  entries(stretches: readonly Stretch[], most: number): Promise<Entry[][]>
  states(refs: readonly string[]): Promise<LoadableState[]>
  remember(shard: number, wallets: readonly Remembered[]): Promise<void>
  /** Puts a row back to what its journal leads to, under an epoch above that of both. False: it is not as it was found any more. */
  mendRow(ref: string, found: AuditedRow, right: AuditedRow): Promise<boolean>
  dropCheckpoint(ref: string): Promise<void>
  /** Keeps what was found, for who asks later. */
  keep(findings: readonly FoundRow[]): Promise<void>
}

export interface AuditBounds {
  /** Whose next expiry is not later is overdue. */
  readonly overdueBefore: number
  /** Whose journal was not read from the beginning since then. */
  readonly fullBefore: number
  /** Also of wallets that are as they were: whether the journal goes on behind its row. */
  readonly ends: boolean
  /** Wallets, of those within the page: no others are looked at. */
  readonly only?: readonly string[]
}
