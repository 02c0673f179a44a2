import { HoldfastError } from '../../errors/index.js'
import { invalid, show } from '../../input/index.js'

/**
 * A value as Redis keeps it: `1 <schemaVersion> <ttlMs> <staleMs> <loadMs> <JSON>`. The first number is the layout of this line, the second
 * the schema of what the application has put into it. How old it is follows from what is left of its TTL, so that no two clocks are compared.
 */
const LAYOUT = 1
const HEADER = /^1 (\d{1,10}) (\d{1,11}) (\d{1,11}) (\d{1,11}) /

export interface Loaded {
  readonly json: string
  readonly ttlMs: number
  readonly staleMs: number
  /** How long it took to load. */
  readonly loadMs: number
}

export const beginOf = (schemaVersion: number): string => `${LAYOUT} ${schemaVersion} `

export const encode = (schemaVersion: number, { json, ttlMs, staleMs, loadMs }: Loaded): string =>
  `${beginOf(schemaVersion)}${ttlMs} ${staleMs} ${Math.ceil(loadMs)} ${json}`

/** Null: it is not what we write. */
export function decode(text: string): Loaded | null {
  const [header = '', , ttlMs, staleMs, loadMs] = HEADER.exec(text) ?? []
  if (header === '') return null
  return {
    json: text.slice(header.length),
    ttlMs: Number(ttlMs),
    staleMs: Number(staleMs),
    loadMs: Number(loadMs),
  }
}

/** What a loader gave, as JSON. */
export function toJson(value: unknown, bytesMax: number): string {
  let json: string | undefined
  try {
    json = JSON.stringify(value)
  } catch {
    // A cycle, a bigint: its message could show the value.
  }
  if (json === undefined) throw invalid('load', 'to give a value that JSON has', show(value))
  const bytes = Buffer.byteLength(json)
  if (bytes > bytesMax) {
    throw new HoldfastError('too_large', `load: expected at most ${bytesMax} bytes of JSON, got ${bytes}`, { bytes })
  }
  return json
}
