import { randomBytes } from 'node:crypto'
import { invalid, kind } from '../../input/index.js'
import { type KeySpace, Scope } from '../keys.js'

const SECRET_BYTES = 32
/** 16 bytes that stand for the subject and 32 by chance, both in base64url. */
const TOKEN = /^([A-Za-z0-9_-]{22})[A-Za-z0-9_-]{43}$/
const ID = /^([0-9a-f]{32})([0-9a-f]{32})$/

/** Where a token stands. */
export interface Place {
  /** Of its subject: so that all tokens of one lie in one slot, and end together. */
  readonly scope: Scope
  /** What the token hashes to. */
  readonly hash: string
  readonly key: string
  readonly generationKey: string
  readonly id: string
}

/**
 * A token says whose it is, in a form that only we can make and nobody can read: an HMAC of the subject. That leads to the slot; what makes
 * it a secret are the 256 random bits behind it.
 */
export function newToken(scope: Scope): string {
  return Buffer.from(scope.hash, 'hex').toString('base64url') + randomBytes(SECRET_BYTES).toString('base64url')
}

/** Null: it is none, whatever it is. It comes from outside, so that is no mistake of the caller's. */
export function placeOfToken(space: KeySpace, token: unknown): Place | null {
  if (typeof token !== 'string') throw invalid('token', 'a string', kind(token))
  const tag = TOKEN.exec(token)?.[1]
  if (tag === undefined) return null
  const subject = Buffer.from(tag, 'base64url').toString('hex')
  return placeAt(space, subject, space.hash(['token', token]))
}

export function placeOfId(space: KeySpace, id: unknown): Place {
  const [, subject, hash] = (typeof id === 'string' && ID.exec(id)) || []
  if (subject === undefined || hash === undefined) throw invalid('id', 'the id of a token', kind(id))
  return placeAt(space, subject, hash)
}

function placeAt(space: KeySpace, subject: string, hash: string): Place {
  const scope = new Scope(space, subject)
  return { scope, hash, key: scope.key(hash), generationKey: generationKeyOf(scope), id: subject + hash }
}

export const generationKeyOf = (scope: Scope): string => scope.key('generation')
