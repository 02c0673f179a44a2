import { randomBytes } from 'node:crypto'
import type { Scope } from '../keys.js'
import type { BloomSize } from './size.js'

/**
 * One filling of a filter. Its size is written down with it, so that processes with other settings read it rightly, and one that is rebuilt
 * may be of another size: `5f0c3c1f6b2a9d04:100000:2:59907:7`.
 */
export interface Generation {
  readonly text: string
  readonly id: string
  readonly capacity: number
  readonly chunks: number
  /** Of the bits of a chunk; its mark comes after them. */
  readonly bytes: number
  readonly hashes: number
}

export interface State {
  readonly text: string
  readonly current: Generation | null
  readonly next: Generation | null
}

export const NO_STATE: State = { text: ' ', current: null, next: null }

/** What stands at the end of a chunk: how many were new in it, and a sum that differs with which. */
export const MARK_BYTES = 8

const FORM = /^([0-9a-f]{16}):([1-9]\d{0,8}):([1-9]\d{0,2}):([1-9]\d{0,4}):([1-9]\d?)$/

export function newGeneration({ capacity, chunks, chunkBytes, hashes }: BloomSize): Generation {
  const id = randomBytes(8).toString('hex')
  const text = `${id}:${capacity}:${chunks}:${chunkBytes}:${hashes}`
  return { text, id, capacity, chunks, bytes: chunkBytes, hashes }
}

/** Null: no state of a filter. */
export function readState(text: string): State | null {
  const [currentText = '', nextText = '', ...rest] = text.split(' ')
  const current = readGeneration(currentText)
  const next = readGeneration(nextText)
  const isRight = (current || currentText === '') && (next || nextText === '') && rest.length === 0
  return isRight ? { text, current, next } : null
}

function readGeneration(text: string): Generation | null {
  const parts = FORM.exec(text)
  if (!parts) return null
  const [capacity, chunks, bytes, hashes] = parts.slice(2).map(Number) as [number, number, number, number]
  return { text, id: parts[1] as string, capacity, chunks, bytes, hashes }
}

export const chunkKey = (scope: Scope, { id }: Generation, chunk: number): string => scope.key(`${id}-${chunk}`)

export function chunkKeys(scope: Scope, generation: Generation | null): string[] {
  if (!generation) return []
  return Array.from({ length: generation.chunks }, (_, chunk) => chunkKey(scope, generation, chunk))
}
