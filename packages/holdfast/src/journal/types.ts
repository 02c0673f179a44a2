import type { Entry, RefundFacts, Stock, WalletState, WalletStatus } from '../machine/index.js'

/** An entry on its way into the journal. */
export interface Filed {
  readonly ref: string
  readonly entry: Entry
  /** Postgres's clock, ms: later than this it must not be appended any more; 0 for entries that Redis decided in time. */
  readonly deadline: number
}

/** Which path decides for a wallet, since its epoch was last raised. */
export type Owner = 'redis' | 'postgres'

/**
 * What became of an entry.
 * - `appended`: it is in the journal now. `there`: it was before. Both are a yes.
 * - `seen`: its key made another entry before.
 * - `epoch`: the wallet lives under another epoch (`epoch`), decided for by `owner`; this entry will never be accepted.
 * - `gap`: what it rests on is not there yet, or its row was `locked`: it may fit later.
 * - `stale`: it rests on something else than what is there, or on an entry that will never be: it will never be accepted.
 * - `late`: its deadline is past.
 * - `bad`: Postgres can't take the data itself. What rests on it is `stale`.
 */
export type Verdict =
  | { type: 'appended' | 'there' | 'seen' | 'late' | 'bad' }
  | { type: 'gap'; seq: number; locked?: boolean }
  | { type: 'epoch'; epoch: number; owner: Owner }
  | { type: 'stale'; epoch: number }

/** A refusal, and what it rests on. */
export interface Refusal {
  readonly ref: string
  readonly epoch: number
  readonly seq: number
  readonly head: string
  /** Empty for reads. */
  readonly key: string
  /** The hold that was not found, or empty. */
  readonly hold: string
}

export interface Confirmation {
  /** The epoch is the current one and the journal holds the head: what the refusal rests on stands. */
  readonly stands: boolean
  /** The wallet's epoch now. */
  readonly epoch: number
  /** Who decides for it now. Null: it stands, or there is no such wallet. */
  readonly owner: Owner | null
  /** The key is in the journal: the refusal must not be told. */
  readonly seen: boolean
  readonly hold: 'unknown' | 'closed' | 'expired'
}

export interface TakeOver {
  /** Not from Redis. */
  readonly joinOnly?: boolean
  /** Also from others on the Postgres path, who notice by that that they are not alone. */
  readonly announce?: boolean
  /** A row that somebody else has locked is waited for, for a moment, and open holds are read for as long as that may take. */
  readonly patient?: boolean
}

/**
 * What came of a take-over. Null: there is no such wallet.
 * - `memory`: Redis may know more, so nobody may.
 * - `loaded`: who would only join found it with Redis.
 * - `locked`: somebody else has its row. `slow`: its open holds can't be read at once. Nothing has changed.
 */
export type TakenOver = Snapshot | 'memory' | 'loaded' | 'locked' | 'slow' | null

/**
 * Something that is known to be in the journal, because its append was seen to succeed: an entry, or with seq 0 the wallet itself. Commits
 * are kept in order, so a database that has the latest has all of them; one that has not was put back, or lost some in a failover.
 */
export interface Witness {
  readonly ref: string
  readonly epoch: number
  readonly seq: number
  readonly hash: string
}

/** How the database stands. */
export interface Standing {
  /** States and entries of epochs up to this one are past. */
  readonly floor: number
  /** What was lost of epochs up to this one was handed out: see `holdfast reconcile`. */
  readonly settled: number
  /** Since when (Postgres's clock, ms) and why nothing is decided; null: nothing keeps it from that. */
  readonly stopped: { readonly at: number; readonly because: string } | null
  /** Those of the witnesses that the journal should have, and has not. */
  readonly missing: readonly Witness[]
}

/** A wallet whose epoch is to be raised. */
export interface Raise {
  readonly ref: string
  /** At least to this. */
  readonly epochMin: number
  /** It is used from memory from now on. */
  readonly memory: boolean
  /** What Redis has as acknowledged: whether the journal holds it is told along. */
  readonly known: Witness | null
}

/** A wallet's state as the journal has it, under an epoch that the caller has just raised or joined. */
export interface Snapshot {
  /** Of a sale without its stock. */
  readonly state: WalletState
  readonly memory: boolean
  /** The journal has what the caller knew to be in it. */
  readonly holds: boolean
  /** Its last entries (`REMEMBERED`), oldest first, where it is raised and is used from memory; else none. */
  readonly recent: readonly Entry[]
  /** Postgres's clock, ms. */
  readonly clock: number
}

export interface WalletRow {
  readonly ref: string
  readonly id: string
  readonly currency: string
  readonly metadata: string
  readonly openedAt: number
  readonly initialLimit: number
  readonly epoch: number
  readonly owner: Owner
  readonly memory: boolean
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

export interface OpenRequest {
  readonly ref: string
  readonly tenant: string
  readonly id: string
  readonly currency: string
  readonly creditLimit: number
  readonly metadata: string
  readonly head: string
}

export interface Charge {
  readonly charge: number
  readonly hold: string
  readonly facts: RefundFacts
}

/** Where a wallet stands among those that are due: by the time, and by their refs where that is the same. */
export interface DuePlace {
  readonly due: number
  readonly ref: string
}

export interface DueWallet extends DuePlace {
  readonly tenant: string
  readonly epoch: number
}

/**
 * The journal: what Postgres remembers. Every call is one statement or one transaction, only `append` may be several; a call that
 * rejects with an outcome of `unknown` may or may not have happened, an append in part. The simulator has one of its own, held to
 * the same cases by the same tests.
 */
export interface Journal {
  /**
   * Appends what continues the journal, in whatever order it is sent; what was overtaken while under way and still fits is tried
   * again. One verdict for each, in order. `clock` is Postgres's, ms; 0 when all of it was `bad`.
   */
  append(filed: readonly Filed[]): Promise<{ verdicts: Verdict[]; clock: number }>
  /** Could it ever be kept? Postgres refuses some texts, whatever else is the matter. */
  canKeep(entry: Entry): boolean
  /**
   * One read of the primary for many refusals. `locked`: somebody keeps the row locked, who may be about to append what was refused; so nothing is
   * known now.
   */
  confirm(refusals: readonly Refusal[]): Promise<(Confirmation | 'locked')[]>
  /**
   * Raises the epochs of wallets, each named once, for states that are to be installed in Redis: all or none. Null: there is no such wallet.
   * `locked`: somebody else is at it, or something of one of them can't be read, or not in time, and several wait for nobody; one alone waits.
   */
  raise(raises: readonly Raise[]): Promise<(Snapshot | 'locked' | null)[]>
  /** The Postgres path takes the wallet over, or joins others who did. Waits for nobody, unless it is to be patient. */
  takeOver(ref: string, how?: TakeOver): Promise<TakenOver>
  /**
   * The stock of a sale after its entry `seq`. By itself, because it may take seconds, and neither its row nor those who raise other epochs
   * should wait for that: what is before an entry never changes. `JournalEnds` where it has no such entry any more.
   */
  stock(ref: string, seq: number): Promise<Stock>
  /** Entries by key; null where there is none. */
  find(wanted: readonly { ref: string; key: string }[]): Promise<(Entry | null)[]>
  /** How a hold stands: the entry that closed it, or else the last one about it. Null: there never was such a hold. */
  holdEntry(ref: string, hold: string): Promise<Entry | null>
  /** What is known of a charge; null when the wallet has no such entry, or it charged nothing. */
  charge(ref: string, seq: number): Promise<Charge | null>
  /** Wallets that may have a hold that is due: earliest first, from behind `after` on, whether that is still there or not. */
  due(until: number, most: number, after: DuePlace | null): Promise<DueWallet[]>
  /** Nothing was due: moves the bound on, unless something happened since. */
  relax(ref: string, epoch: number, seq: number, due: number): Promise<void>
  /** Notes the open holds, so that loading the wallet need not read further back. Has more time than others. */
  checkpoint(ref: string): Promise<void>
  /** How the database stands, and what it should have and has not. Fails on a server that takes no writes. */
  prove(witnesses: readonly Witness[]): Promise<Standing>
  /** Writes what is of no concern to anybody, and is committed like everything else. False: it can't be done now, or another one of it is under way. */
  proveWrites(): Promise<boolean>
  /** From now on nothing is decided, by anybody, until an operator has acted; unless all up to `epoch` is past already. */
  stop(epoch: number, because: string): Promise<void>
  /** True: made now. */
  open(request: OpenRequest): Promise<boolean>
  read(refs: readonly string[]): Promise<WalletRow[]>
  /** Entries from `seq` on, in order. */
  entries(ref: string, seq: number, most: number): Promise<Entry[]>
}
