import type { Scope } from '../keys.js'

export interface Terms {
  readonly leaseMs: number
  readonly retentionMs: number
}

/** What a claim has found. */
export type Standing =
  | { readonly result: 'claimed'; readonly attempt: number; readonly tookOver: boolean }
  | { readonly result: 'processing'; readonly leftMs: number }
  /** The response as it is kept. */
  | { readonly result: 'completed'; readonly response: string }
  | { readonly result: 'conflict' }

export type RecordLook =
  | { readonly result: 'free' }
  | { readonly result: 'processing'; readonly attempt: number; readonly leftMs: number }
  | { readonly result: 'completed'; readonly attempt: number; readonly response: string }
  | { readonly result: 'failed'; readonly attempt: number; readonly reason: string }

/** Where it stands what became of keys. Tokens and requests come as what they hash to. */
export interface Records {
  claim(scope: Scope, token: string, request: string | null): Promise<Standing>
  /** The response that is kept; null: lost. */
  complete(scope: Scope, token: string, response: string): Promise<string | null>
  /** False: lost. */
  fail(scope: Scope, token: string, reason: string): Promise<boolean>
  /** False: lost. */
  renew(scope: Scope, token: string): Promise<boolean>
  peek(scope: Scope): Promise<RecordLook>
}
