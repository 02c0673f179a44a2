import { randomBytes } from 'node:crypto'
import { text } from '../input/index.js'
import type { KeySpace } from './keys.js'

/** Says whose something is. In Redis and Postgres stands what it hashes to: who can read there can't act as the owner. */
export interface Ownership {
  readonly token: string
  readonly hash: string
}

/** Of a claim that is about to be made. A token of the caller's own makes that claim the same one when it is made again. */
export function ownership(space: KeySpace, given: unknown): Ownership {
  return given === undefined ? owned(space, randomBytes(16).toString('hex')) : owned(space, given)
}

/** Of somebody who says to have claimed it. */
export function owned(space: KeySpace, given: unknown): Ownership {
  const token = text('token', given)
  return { token, hash: space.hash(['token', token]) }
}
