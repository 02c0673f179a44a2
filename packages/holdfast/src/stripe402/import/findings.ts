import { HoldfastError } from '../../errors/index.js'
import { shortId } from '../failures.js'

/**
 * What is told of a client:
 *
 * - `damaged`   what the store has of it can't be read, or does not add up to a number: left out
 * - `unequal`   its transactions do not come to its balance
 * - `exists`    its wallet was made by others: left out
 * - `changed`   it is not what it was when an import of it began: left out
 * - `differs`   its wallet has another balance than the store
 */
export const FINDING_KINDS = ['damaged', 'unequal', 'exists', 'changed', 'differs'] as const
export type FindingKind = (typeof FINDING_KINDS)[number]

export interface Finding {
  readonly kind: FindingKind
  /** The beginning of its id: enough to find it by, too little to spend its balance. */
  readonly client: string
  readonly text: string
}

const KEPT_MAX = 100

/** All of them are counted, the first are kept. */
export class Findings {
  readonly counts: Record<FindingKind, number> = { damaged: 0, unequal: 0, exists: 0, changed: 0, differs: 0 }
  readonly kept: Finding[] = []

  add(kind: FindingKind, clientId: string, text: string): void {
    this.note({ kind, client: shortId(clientId), text })
  }

  note(finding: Finding): void {
    this.counts[finding.kind] += 1
    if (this.kept.length < KEPT_MAX) this.kept.push(finding)
  }

  /** What a store says of a client that can't be read. */
  damaged(error: Error): void {
    const { client: named } = error as Error & { client?: unknown }
    const client = typeof named === 'string' ? named : ''
    const beginning = `client ${client}, `
    // Who it is stands beside it.
    const text = error.message.startsWith(beginning) ? error.message.slice(beginning.length) : error.message
    this.note({ kind: 'damaged', client, text })
  }
}

/** A name that no method takes, or no wallet can have: of the client, its currency or its customer. */
export const isUnfit = (error: unknown): error is HoldfastError =>
  HoldfastError.is(error, 'invalid_argument') || HoldfastError.is(error, 'too_large')

/** Thrown where a client has to stay where it is. */
export class LeftOut extends Error {
  readonly kind: FindingKind

  constructor(kind: FindingKind, message: string) {
    super(message)
    this.kind = kind
  }
}
