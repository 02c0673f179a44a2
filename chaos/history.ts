/**
 * What callers saw, one line an event, in a file of each worker: written before a call leaves and after its answer came, with a write
 * that is over before anything else happens. So it is all there whatever becomes of the worker, `kill -9` included.
 *
 *     {"begin":7,"at":…,"asked":{"kind":"hold","wallet":"wallet-3","key":"a-12",…}}
 *     {"end":7,"at":…,"answer":{"type":"yes","replayed":false,"entries":[…]}}
 */
import { closeSync, openSync, readFileSync, readSync, writeSync } from 'node:fs'
import type { Entry, Facts, Receipt } from 'holdfast'

/** One thing that a caller asks for. The same key again is the same thing again. */
export type Asked =
  | { readonly kind: 'credit' | 'debit'; readonly wallet: string; readonly key: string; readonly amount: number }
  | {
      readonly kind: 'hold'
      readonly wallet: string
      readonly key: string
      readonly amount: number
      readonly ttlMs: number
    }
  | {
      readonly kind: 'capture' | 'settle'
      readonly wallet: string
      readonly key: string
      readonly hold: string
      readonly amount: number
      readonly beyond: boolean
    }
  | {
      readonly kind: 'extend'
      readonly wallet: string
      readonly key: string
      readonly hold: string
      readonly amount: number
      readonly ttlMs: number
    }
  | { readonly kind: 'release'; readonly wallet: string; readonly key: string; readonly hold: string }
  | {
      readonly kind: 'refund'
      readonly wallet: string
      readonly key: string
      readonly of: number
      readonly amount: number
    }
  | {
      readonly kind: 'meter'
      readonly wallet: string
      readonly key: string
      readonly rate: number
      readonly reserve: number
      readonly heartbeatMs: number
    }
  /** Of a session; `key` only tells one apart from another: the product makes keys of its own for them. */
  | {
      readonly kind: 'tick' | 'end'
      readonly wallet: string
      readonly key: string
      readonly session: string
      readonly total: number
    }
  | {
      readonly kind: 'transfer'
      readonly wallet: string
      readonly key: string
      readonly to: string
      readonly amount: number
      readonly fee: number
    }
  | { readonly kind: 'read'; readonly wallet: string; readonly key: string; readonly pending: boolean }

export type ToldEntry = Pick<Entry, 'seq' | 'key' | 'prev' | 'hash' | 'available' | 'reserved'>

export type Answer =
  /** A transfer has two entries: the source's and the target's. */
  | { readonly type: 'yes'; readonly replayed: boolean; readonly entries: readonly ToldEntry[] }
  | { readonly type: 'read'; readonly seq: number; readonly available: number; readonly reserved: number }
  | { readonly type: 'no'; readonly code: string; readonly facts: Facts }
  /** Retryable: whether it happened is not said. */
  | { readonly type: 'unknown'; readonly code: string }

/** One call, as its caller saw it. */
export interface Seen {
  readonly worker: string
  readonly asked: Asked
  /** Milliseconds since 1970: all of it happens on one machine. */
  readonly startedAt: number
  endedAt: number
  /** Null: the worker was gone before there was an answer. */
  answer: Answer | null
}

type Line =
  | { readonly begin: number; readonly at: number; readonly asked: Asked }
  | { readonly end: number; readonly at: number; readonly answer: Answer }
  | { readonly counts: Readonly<Record<string, number>> }

export class Recorder {
  readonly #file: number
  #calls = 0

  constructor(path: string) {
    this.#file = openSync(path, 'a')
  }

  begin(asked: Asked): number {
    const begin = this.#calls++
    this.#write({ begin, at: now(), asked })
    return begin
  }

  end(call: number, answer: Answer): void {
    this.#write({ end: call, at: now(), answer })
  }

  /** What the engine had to set right so far. */
  counts(counts: Readonly<Record<string, number>>): void {
    this.#write({ counts })
  }

  close(): void {
    closeSync(this.#file)
  }

  #write(line: Line): void {
    writeSync(this.#file, `${JSON.stringify(line)}\n`)
  }
}

/** Of the machine: `performance.timeOrigin` is taken a moment beside where `performance.now()` begins, and on a busy machine the two were 44 ms apart. */
const now = () => Date.now()

export interface WorkerHistory {
  readonly seen: Seen[]
  readonly counts: Readonly<Record<string, number>>
}

export function readHistory(worker: string, path: string): WorkerHistory {
  const byCall = new Map<number, Seen>()
  let counts: Readonly<Record<string, number>> = {}
  // What stands behind the last newline is what a dying worker did not get to write.
  for (const text of readFileSync(path, 'utf8').split('\n').slice(0, -1)) {
    const line = JSON.parse(text) as Line
    if ('counts' in line) counts = line.counts
    else if ('begin' in line) {
      const { begin, at, asked } = line
      byCall.set(begin, { worker, asked, startedAt: at, endedAt: Number.POSITIVE_INFINITY, answer: null })
    } else {
      const seen = byCall.get(line.end)
      if (!seen) throw new Error(`${path}: an answer to a call that was never made`)
      seen.endedAt = line.at
      seen.answer = line.answer
    }
  }
  return { seen: [...byCall.values()], counts }
}

/** Counts how often callers were told yes, as it is written, without reading what it has read before. */
export class YesCount {
  readonly #path: string
  readonly #chunk = Buffer.alloc(1 << 16)
  #file: number | undefined
  #rest = ''
  #count = 0

  constructor(path: string) {
    this.#path = path
  }

  get count(): number {
    this.#file ??= openSync(this.#path, 'r')
    for (let read = 1; read > 0; ) {
      read = readSync(this.#file, this.#chunk)
      const lines = (this.#rest + this.#chunk.toString('latin1', 0, read)).split('\n')
      this.#rest = lines.pop() as string
      this.#count += lines.filter((line) => line.startsWith('{"end"') && line.includes('"answer":{"type":"yes"')).length
    }
    return this.#count
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file)
  }
}

export function told({ entry, replayed }: Receipt): { entries: ToldEntry[]; replayed: boolean } {
  const { seq, key, prev, hash, available, reserved } = entry
  return { entries: [{ seq, key, prev, hash, available, reserved }], replayed }
}
