import { HoldfastError } from '../../errors/index.js'
import { flag, integer, invalid, namesOf, oneOf, options as optionsOf, show } from '../../input/index.js'
import type { Script } from '../../redis/index.js'
import { cellDrop, cellGet, cellSet, cellSwap, cellUnlink, keyTtl } from '../../redis/scripts.generated.js'
import { Calls, damaged } from '../calls.js'
import { type Context, note, tell } from '../context.js'
import { durationMs, KeySpace, type Purpose, type Scope } from '../keys.js'
import { type Lifetime, lifetime, purposeFor } from '../lifetime.js'
import type { Primitives } from '../primitives.js'
import { forMany, scopesOf, TooMuch } from './many.js'
import type {
  CellDelete,
  CellRead,
  CellSet,
  CellSetOver,
  CellSwap,
  CellTime,
  Deleted,
  Differs,
  Missing,
  OneOfMany,
  Swapped,
} from './results.js'
import { decode, encode, type ValueKind, type ValueOf } from './value.js'

export interface CellOptions<Kind extends ValueKind = ValueKind> {
  /** How long a value stays when a call says nothing else. `none`: until it is deleted; that has to be said. */
  readonly ttlMs: Lifetime
  /** What values are. Default `text`. */
  readonly values?: Kind
  /** Of a value. Default 64 KiB, at most 1 MiB. */
  readonly maxBytes?: number
  /** How many a call of `getMany` or `setMany` may name. Default 256, at most 4,096. */
  readonly manyMax?: number
  /** How many bytes the values of such a call may have together. Default 4 MiB, at most 64 MiB. */
  readonly manyMaxBytes?: number
}

const OPTION_NAMES = namesOf<CellOptions>({
  ttlMs: true,
  values: true,
  maxBytes: true,
  manyMax: true,
  manyMaxBytes: true,
})

export interface SwapOptions {
  /** A new end, or the one it has. Default `keep`. */
  readonly ttlMs?: number | 'keep'
}

const SWAP_NAMES = namesOf<SwapOptions>({ ttlMs: true })

export interface SetOptions {
  /** `missing`: only where nothing is there (NX). `there`: only where something is (XX). Default `always`. */
  readonly when?: 'always' | 'missing' | 'there'
  /** Tell what was there before. */
  readonly previous?: boolean
  /** A new end, or the one it has: where nothing is there, that of the cell. Default: that of the cell. */
  readonly ttlMs?: number | 'keep'
}

const SET_NAMES = namesOf<SetOptions>({ when: true, previous: true, ttlMs: true })

const KIB = 1_024
const MIB = 1_024 * KIB
/** Of values that a call carries at most: while a script runs, the server serves nobody else. */
const CALL_BYTES_MAX = 2 * MIB

type Of = string | readonly string[]

/**
 * A value under a key, of which every change is a transition that says what it expects to find. What a call reads and writes is one step
 * on the server, the end included; calls of several scopes are several steps.
 */
export class Cell<Kind extends ValueKind = 'text'> {
  readonly ttlMs: Lifetime
  readonly maxBytes: number
  readonly #manyMax: number
  readonly #manyMaxBytes: number
  readonly #context: Context
  readonly #purpose: Purpose
  readonly #space: KeySpace
  readonly #kind: Kind
  readonly #get: Calls
  readonly #set: Calls
  readonly #swap: Calls
  readonly #drop: Calls
  readonly #unlink: Calls
  readonly #ttl: Calls

  constructor({ context }: Primitives, operation: string, options: CellOptions<Kind>) {
    const asked = optionsOf('options', options, OPTION_NAMES)
    this.ttlMs = lifetime('ttlMs', asked.ttlMs)
    this.maxBytes = integer('maxBytes', asked.maxBytes ?? 64 * KIB, 1, MIB)
    this.#manyMax = integer('manyMax', asked.manyMax ?? 256, 1, 4_096)
    this.#manyMaxBytes = integer('manyMaxBytes', asked.manyMaxBytes ?? 4 * MIB, 1, 64 * MIB)
    this.#kind = oneOf('values', asked.values ?? 'text', ['text', 'bytes']) as Kind
    this.#context = context
    this.#purpose = purposeFor('cell', this.ttlMs)
    this.#space = new KeySpace(context, this.#purpose, operation)
    const callMax = Math.floor(CALL_BYTES_MAX / this.maxBytes)
    const calls = (script: Script) => new Calls(context, this.#purpose, script, callMax)
    this.#get = calls(cellGet)
    this.#set = calls(cellSet)
    this.#swap = calls(cellSwap)
    this.#drop = calls(cellDrop)
    this.#unlink = calls(cellUnlink)
    this.#ttl = calls(keyTtl)
  }

  /** Null: nothing is there. An empty value is a value. */
  async get(of: Of): Promise<ValueOf<Kind> | null> {
    const scope = this.#space.scope(of)
    const bytes = (await this.#get.add(scope, [scope.base], [])) as Buffer | null
    return this.#read(scope, bytes)
  }

  /** Writes on a condition, with the end in the same step. */
  set(
    of: Of,
    value: ValueOf<Kind>,
    options: SetOptions & { readonly previous: true },
  ): Promise<CellSetOver<ValueOf<Kind>>>
  set(of: Of, value: ValueOf<Kind>, options?: SetOptions): Promise<CellSet<ValueOf<Kind>>>
  async set(of: Of, value: unknown, options: SetOptions = {}): Promise<CellSet<ValueOf<Kind>>> {
    const bytes = encode('value', value, this.#kind, this.maxBytes)
    return this.#write(this.#space.scope(of), bytes, this.#conditions(options))
  }

  /** `expected` to `next`, if it is that to the byte. */
  async compareAndSet(
    of: Of,
    expected: ValueOf<Kind>,
    next: ValueOf<Kind>,
    options: SwapOptions = {},
  ): Promise<CellSwap<ValueOf<Kind>>> {
    const from = encode('expected', expected, this.#kind, this.maxBytes)
    const to = encode('next', next, this.#kind, this.maxBytes)
    const ends = endOf(optionsOf('options', options, SWAP_NAMES).ttlMs) ?? 'keep'
    const scope = this.#space.scope(of)
    const answer = (await this.#swap.add(scope, [scope.base], [from, to, ends])) as [Buffer, Buffer?]
    return this.#compared(scope, answer, { result: 'swapped' })
  }

  /** Deletes it, if it is `expected` to the byte. */
  async compareAndDelete(of: Of, expected: ValueOf<Kind>): Promise<CellDelete<ValueOf<Kind>>> {
    const bytes = encode('expected', expected, this.#kind, this.maxBytes)
    const scope = this.#space.scope(of)
    const answer = (await this.#drop.add(scope, [scope.base], [bytes])) as [Buffer, Buffer?]
    return this.#compared(scope, answer, { result: 'deleted' })
  }

  /** Deletes it, whatever it is. True: there was something. */
  async unlink(of: Of): Promise<boolean> {
    const scope = this.#space.scope(of)
    const isGone = (await this.#unlink.add(scope, [scope.base], [])) === 1
    tell(this.#context, this.#purpose, isGone ? 'deleted' : 'missing')
    return isGone
  }

  async ttl(of: Of): Promise<CellTime> {
    const scope = this.#space.scope(of)
    const leftMs = (await this.#ttl.add(scope, [scope.base], [])) as number
    if (leftMs === -2) return { result: 'missing' }
    return leftMs === -1 ? { result: 'no_end' } : { result: 'ends', leftMs }
  }

  /**
   * Of many scopes, in their order. Each is read by itself: together they are no picture of one moment. What fails with one does not cost
   * the others; `too_large`, where they have more bytes together than allowed, ends them all.
   */
  async getMany(of: readonly Of[]): Promise<OneOfMany<CellRead<ValueOf<Kind>>>[]> {
    const scopes = scopesOf(this.#space, of, this.#manyMax)
    let bytes = 0
    return forMany<CellRead<ValueOf<Kind>>>(this.#context, scopes, async (scope) => {
      const held = (await this.#get.add(scope, [scope.base], [])) as Buffer | null
      if (held === null) return { result: 'missing' }
      bytes += held.length
      if (bytes > this.#manyMaxBytes) throw new TooMuch('values', this.#manyMaxBytes, 'bytes together', 'more')
      return { result: 'found', value: this.#read(scope, held) as ValueOf<Kind> }
    })
  }

  /** To many scopes, each by itself: when one is refused or fails, the others are written all the same. The results are in their order. */
  async setMany(
    entries: readonly (readonly [of: Of, value: ValueOf<Kind>])[],
    options: Omit<SetOptions, 'previous'> = {},
  ): Promise<OneOfMany<CellSet<ValueOf<Kind>>>[]> {
    if (!Array.isArray(entries) || !entries.every(Array.isArray)) throw invalid('entries', 'pairs', show(entries))
    const scopes = scopesOf(
      this.#space,
      entries.map(([of]) => of),
      this.#manyMax,
    )
    const conditions = { ...this.#conditions(options), previous: false }
    const values = entries.map(([, value], at) => encode(`entries[${at}]`, value, this.#kind, this.maxBytes))
    const bytes = values.reduce((sum, { length }) => sum + length, 0)
    if (bytes > this.#manyMaxBytes) throw new TooMuch('values', this.#manyMaxBytes, 'bytes together', `${bytes}`)
    return forMany(this.#context, scopes, (scope, at) => this.#write(scope, values[at] as Buffer, conditions))
  }

  #conditions(options: unknown): Conditions {
    const { when = 'always', previous, ttlMs } = optionsOf('options', options, SET_NAMES)
    const end = endOf(ttlMs)
    return {
      when: oneOf('when', when, ['always', 'missing', 'there']),
      ifThere: end ?? this.ttlMs,
      // Nothing is there whose end could be kept: it gets that of the cell, and never none by accident.
      ifMissing: end === undefined || end === 'keep' ? this.ttlMs : end,
      previous: flag('previous', previous),
    }
  }

  async #write(
    scope: Scope,
    bytes: Buffer,
    { when, ifThere, ifMissing, previous }: Conditions,
  ): Promise<CellSet<ValueOf<Kind>>> {
    const args = [bytes, when, ifThere, ifMissing, previous ? 1 : 0]
    const [result, held] = (await this.#set.add(scope, [scope.base], args)) as [Buffer, Buffer | null]
    const isWritten = String(result) === 'written'
    tell(this.#context, this.#purpose, isWritten ? 'written' : 'refused')
    if (!isWritten) return { result: 'refused', current: this.#read(scope, held) }
    if (!previous) return { result: 'written' }
    const over: CellSetOver<ValueOf<Kind>> = { result: 'written', previous: this.#readPrevious(scope, held) }
    return over
  }

  #compared<Done extends Swapped | Deleted>(
    scope: Scope,
    [answer, held]: readonly [Buffer, Buffer?],
    done: Done,
  ): Done | Differs<ValueOf<Kind>> | Missing {
    const result = String(answer) as Done['result'] | 'differs' | 'missing'
    tell(this.#context, this.#purpose, result)
    if (result === 'missing') return { result: 'missing' }
    if (result !== 'differs') return done
    note(this.#context, 'cell_differs', scope)
    return { result: 'differs', current: this.#read(scope, held as Buffer) as ValueOf<Kind> }
  }

  #read(scope: Scope, bytes: Buffer | null): ValueOf<Kind> | null {
    if (bytes === null) return null
    const value = decode(bytes, this.#kind)
    if (value !== null) return value
    tell(this.#context, this.#purpose, 'damaged')
    throw damaged(scope)
  }

  /** The other errors of damage say that nothing was changed: this one must not. */
  #readPrevious(scope: Scope, bytes: Buffer | null): ValueOf<Kind> | null {
    const value = bytes && decode(bytes, this.#kind)
    if (bytes === null || value !== null) return value
    tell(this.#context, this.#purpose, 'damaged')
    const { facts, message } = damaged(scope)
    throw new HoldfastError('value_damaged', `${message}; it was written over`, { ...facts, written: true })
  }
}

interface Conditions {
  readonly when: 'always' | 'missing' | 'there'
  readonly ifThere: Lifetime | 'keep'
  readonly ifMissing: Lifetime
  readonly previous: boolean
}

/** What a call asks for, if it does. Without an end is what a whole cell is, or nothing of it: no call can make one key leak. */
export function endOf(ttlMs: unknown): number | 'keep' | undefined {
  if (ttlMs === undefined || ttlMs === 'keep') return ttlMs
  if (typeof ttlMs !== 'number') throw invalid('ttlMs', "milliseconds or 'keep'", show(ttlMs))
  return durationMs('ttlMs', ttlMs)
}
