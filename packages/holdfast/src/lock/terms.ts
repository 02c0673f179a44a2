import type { Backoff } from '../redis/index.js'

/** Where a lock lies that is held. */
export interface HeldStore {
  /** False: it is not the owner's any more. */
  renew(owner: string, ttlMs: number): Promise<boolean>
  /** False: it was not the owner's any more. */
  release(owner: string): Promise<boolean>
}

/** Where one lock lies: one Redis, or several that are asked for a majority. */
export interface LockStore extends HeldStore {
  take(owner: string, ttlMs: number): Promise<Taken>
}

/** Taken, with a token if the store has tokens of its own. */
export type Taken = { readonly token: number | null } | Busy

/** Somebody else has it, for so long at most unless it is renewed. */
export interface Busy {
  readonly busyMs: number
}

/** How often to try again when somebody else has it, and for how long in all. */
export interface Retry extends Backoff {
  readonly times: number
  readonly maxWaitMs: number
}

/** How a lock was lost: our clock says so, Redis says so, it was held for as long as it may be, or there are no connections any more. */
export type Loss = 'late' | 'taken' | 'end' | 'closed'

/** What a lock is held under. */
export interface HeldTerms {
  /** As a loss is told: `The lock of the wallet`. */
  readonly name: string
  readonly ttlMs: number
  readonly autoRenew: boolean
  readonly heldMaxMs: number
  /** Told when it is lost before it was given back. */
  readonly lost: (loss: Loss, store: HeldStore) => void
}

/** What a lock is taken under. */
export interface Terms extends HeldTerms {
  readonly retry: Retry | null
  /** Null: the store has tokens of its own. */
  readonly drawToken: (() => Promise<number>) | null
}
