import type { CallersClient } from '../../postgres/index.js'

export interface IdempotencyOptions {
  /** For how long an owner that has died blocks the others. Default 30 s; `run` renews it. */
  readonly leaseMs?: number
  /** For how long a response is kept and answered again. Default 7 days. */
  readonly retentionMs?: number
  /** As JSON. Default 65,536, at most 262,144. */
  readonly responseMaxBytes?: number
  /** Keep what became of keys in Postgres, with Redis in front. The same in all processes. Default false: in Redis alone. */
  readonly durable?: boolean
}

export interface IdempotencyCall {
  /** What the key is bound to: JSON, or bytes. Only its hash is kept. Without it nothing is compared. */
  readonly request?: unknown
  /** One of your own, unique to this claim: the same claim made again is claimed again. Default a random one. */
  readonly token?: string
}

export interface RunCall extends IdempotencyCall {
  /** Tells the work that nobody waits for it any more. */
  readonly signal?: AbortSignal
}

/** Somebody is at it. */
interface Processing {
  readonly result: 'processing'
  /** After so long it is worth asking again: unless its owner renews the lease, somebody else can have it then. */
  readonly leftMs: number
}

export type IdempotencyClaim<Response = unknown> =
  | {
      readonly result: 'claimed'
      /** What you complete, fail or renew it with. */
      readonly token: string
      /** 1 for the first. */
      readonly attempt: number
      /** The one before had a lease that ran out: what it has done is not known. */
      readonly tookOver: boolean
    }
  | Processing
  | { readonly result: 'completed'; readonly response: Response; readonly replayed: true }

export type IdempotencyLook<Response = unknown> =
  | { readonly result: 'free' }
  /** `leftMs` 0: the lease has run out, and the next claim gets it. */
  | { readonly result: 'processing'; readonly attempt: number; readonly leftMs: number }
  | { readonly result: 'completed'; readonly attempt: number; readonly response: Response }
  | { readonly result: 'failed'; readonly attempt: number; readonly reason: string }

export type IdempotentRun<Response = unknown> =
  | { readonly result: 'completed'; readonly response: Response; readonly replayed: boolean }
  | Processing

export interface IdempotentWork<Response = unknown> {
  /** Fires when the key is lost, and with the caller's own: stop. */
  readonly signal: AbortSignal
  readonly token: string
  readonly attempt: number
  readonly tookOver: boolean
  /** As `Idempotency.completeIn`, for this key. The last step before the commit: the lease is not renewed any more, and only the commit completes it. */
  completeIn(client: CallersClient, response: Response): Promise<void>
}
