import type { Durability, ErrorCode, Wallet } from 'holdfast'
import type { Static, TObject, TProperties, TSchema } from 'typebox'
import type { Scope } from '../access/index.js'

/** What an operation is about. */
export interface Subject {
  readonly wallet: Wallet
  /** Empty where the path has none. */
  readonly hold: string
  readonly session: string
}

export interface CallOptions {
  /** Where an operation takes one there is one: that was checked. */
  readonly key: string
  readonly metadata?: unknown
  readonly counter?: string
  readonly durability?: Durability
  readonly signal: AbortSignal
}

/**
 * An operation is data: one row makes the route, its place in a batch, and its part of the description.
 */
export interface Operation {
  /** Its name in a batch. */
  readonly name: string
  readonly operationId: string
  /** Below `/v1/wallets/{id}`. */
  readonly path: string
  readonly summary: string
  readonly tag: 'wallets' | 'holds' | 'sessions'
  readonly scope: Scope
  /** Whether it needs a key; without one it is safe to repeat by itself. */
  readonly keyed: boolean
  readonly body: TProperties
  readonly answer: TSchema
  /** What it may be refused with, beside what every operation may. */
  readonly refusals: readonly ErrorCode[]
  run(subject: Subject, body: Record<string, unknown>, options: CallOptions): Promise<unknown>
}

/** Lets each row know the type of its own body. */
export const operation = <Body extends TProperties>(
  row: Omit<Operation, 'body' | 'run'> & {
    body: Body
    run(subject: Subject, body: Static<TObject<Body>>, options: CallOptions): Promise<unknown>
  },
): Operation => row as unknown as Operation
