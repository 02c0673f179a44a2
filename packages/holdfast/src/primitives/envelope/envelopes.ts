import { setTimeout as sleep } from 'node:timers/promises'
import { HoldfastError } from '../../errors/index.js'
import { given, integer, invalid, namesOf, options as optionsOf, show } from '../../input/index.js'
import { damaged } from '../calls.js'
import { Cell, type SwapOptions } from '../cell/cell.js'
import type { CellTime, Deleted, Differs, Missing } from '../cell/results.js'
import { isStateName, States, type Transitions } from '../cell/states.js'
import { type Context, tell } from '../context.js'
import { KeySpace, type Purpose } from '../keys.js'
import { type Lifetime, purposeFor } from '../lifetime.js'
import type { Primitives } from '../primitives.js'
import { type Envelope, Format, isUnreadable, type Unreadable, type Upgrades } from './format.js'
import { checkOf, type Schema } from './schema.js'

export interface EnvelopesOptions<Payload, State extends string> {
  /** How long an envelope stays when a call says nothing else. `none`: until it is deleted; that has to be said. */
  readonly ttlMs: Lifetime
  /** Of the payloads that are written now, from 1. */
  readonly schemaVersion: number
  readonly schema: Schema<Payload>
  /** `{ 1: (payload) => … }` makes of a payload of version 1 one of version 2. Without gaps up to `schemaVersion`. */
  readonly upgrades?: Upgrades
  /** Which states there are, and from which one comes to which. Without it a state is any name, and may follow any other. */
  readonly states?: Transitions<State>
  /** Of an envelope in JSON. Default 64 KiB, at most 1 MiB. */
  readonly maxBytes?: number
}

const OPTION_NAMES = namesOf<EnvelopesOptions<unknown, string>>({
  ttlMs: true,
  schemaVersion: true,
  schema: true,
  upgrades: true,
  states: true,
  maxBytes: true,
})

/** What is to be different; the rest stays. */
export interface EnvelopeChange<Payload, State extends string> {
  readonly state?: State
  readonly payload?: Payload
}

const FIRST_NAMES = namesOf<EnvelopeChange<unknown, string>>({ state: true, payload: true })
const CREATE_NAMES = namesOf<{ ttlMs?: number }>({ ttlMs: true })

export interface UpdateOptions extends SwapOptions {
  /** How often it is tried when others write at the same time. Default 8. */
  readonly triesMax?: number
}

const UPDATE_NAMES = namesOf<UpdateOptions>({ ttlMs: true, triesMax: true })

type Created<E> = { readonly result: 'created'; readonly envelope: E }
type Exists<E> = { readonly result: 'exists'; readonly envelope: E }
type Updated<E> = { readonly result: 'updated'; readonly envelope: E }
type Unchanged<E> = { readonly result: 'unchanged'; readonly envelope: E }
/** From its state one does not come to that one; nothing was changed. */
type WrongState<E> = { readonly result: 'wrong_state'; readonly envelope: E }

export type EnvelopeCreate<E> = Created<E> | Exists<E>
export type EnvelopeReplace<E> = Updated<E> | WrongState<E> | Differs<E> | Missing
export type EnvelopeUpdate<E> = EnvelopeReplace<E> | Unchanged<E>
export type EnvelopeDelete<E> = Deleted | Differs<E> | Missing

type Of = string | readonly string[]

const TRIES_MAX = 8
const REST_MAX_MS = 32

/**
 * Values that say of which version they are, in which state, and since when; in JSON, each in a cell of its own. A change is a
 * compare-and-set of the whole envelope: who loses the race is told, or tries again with what the winner has written.
 */
export class Envelopes<Payload, State extends string = string> {
  readonly #cell: Cell
  readonly #format: Format<Payload, State>
  readonly #states: States<State> | null
  readonly #context: Context
  readonly #purpose: Purpose
  readonly #space: KeySpace
  /** What an envelope was in Redis, to the byte: that is what is compared. */
  readonly #texts = new WeakMap<Envelope<Payload, State>, string>()

  constructor(primitives: Primitives, operation: string, options: EnvelopesOptions<Payload, State>) {
    given('options', options, 'an object')
    optionsOf('options', options, OPTION_NAMES)
    const { ttlMs, schemaVersion, schema, upgrades = {}, states, maxBytes } = options
    const machine = states === undefined ? null : new States<State>(states)
    const hasState = (name: unknown) => (machine ? machine.has(name) : isStateName(name))
    this.#cell = new Cell(primitives, operation, { ttlMs, ...(maxBytes !== undefined && { maxBytes }) })
    this.#format = new Format({ schemaVersion, upgrades, check: checkOf(schema), hasState })
    this.#states = machine
    this.#context = primitives.context
    this.#purpose = purposeFor('cell', this.#cell.ttlMs)
    this.#space = new KeySpace(this.#context, this.#purpose, operation)
  }

  /** Where there is none. */
  async create(
    of: Of,
    first: { readonly state: State; readonly payload: Payload },
    options: { readonly ttlMs?: number } = {},
  ): Promise<EnvelopeCreate<Envelope<Payload, State>>> {
    const { state, payload } = optionsOf('first', first, FIRST_NAMES)
    const { ttlMs } = optionsOf('options', options, CREATE_NAMES)
    if (ttlMs === 'keep') throw invalid('ttlMs', 'milliseconds', show(ttlMs))
    const now = new Date(this.#context.now())
    const [text, envelope] = await this.#format.write({
      state: this.#checkState(state),
      createdAt: now,
      updatedAt: now,
      payload,
    })
    const answer = await this.#cell.set(of, text, { ...options, when: 'missing' })
    if (answer.result === 'written') return { result: 'created', envelope: this.#remember(envelope, text) }
    return { result: 'exists', envelope: await this.#open(of, answer.current as string) }
  }

  /** Of whatever version it is, it comes as one of the newest. Nothing is written for that. */
  async get(of: Of): Promise<Envelope<Payload, State> | null> {
    const text = await this.#cell.get(of)
    return text === null ? null : this.#open(of, text)
  }

  /**
   * Changes it by what `change` makes of it; null leaves it. Who comes too late is given what is there by then, so `change` may be called
   * several times. After `triesMax` times it is `differs`.
   */
  async update(
    of: Of,
    change: (
      envelope: Envelope<Payload, State>,
    ) => EnvelopeChange<Payload, State> | null | Promise<EnvelopeChange<Payload, State> | null>,
    options: UpdateOptions = {},
  ): Promise<EnvelopeUpdate<Envelope<Payload, State>>> {
    if (typeof change !== 'function') throw invalid('change', 'a function', show(change))
    const { triesMax = TRIES_MAX, ...swap } = optionsOf('options', options, UPDATE_NAMES)
    integer('triesMax', triesMax, 1, 1_000)
    let envelope = await this.get(of)
    for (let tries = 1; envelope !== null; tries += 1) {
      const changed = await change(envelope)
      if (changed === null) return { result: 'unchanged', envelope }
      const answer = await this.replace(of, envelope, changed, swap)
      if (answer.result !== 'differs' || tries === triesMax) return answer
      envelope = answer.current
      // Those who lost together do not come back together.
      await sleep(Math.random() * Math.min(REST_MAX_MS, 2 ** tries))
    }
    return { result: 'missing' }
  }

  /** Changes the very envelope that was read, if nobody has changed it since. */
  async replace(
    of: Of,
    read: Envelope<Payload, State>,
    change: EnvelopeChange<Payload, State>,
    options: SwapOptions = {},
  ): Promise<EnvelopeReplace<Envelope<Payload, State>>> {
    given('change', change, 'what is to be different')
    const before = this.#textOf(read)
    // Whoever spreads the envelope that he read, and changes something, brings the rest of it along.
    const { state: to = read.state, payload = read.payload } = optionsOf('change', change) as typeof change
    this.#checkState(to)
    // To stay in a state is no transition.
    if (to !== read.state && this.#states?.may(read.state, to) === false) {
      tell(this.#context, this.#purpose, 'wrong_state')
      return { result: 'wrong_state', envelope: read }
    }
    const updatedAt = new Date(Math.max(this.#context.now(), read.updatedAt.getTime() + 1))
    const [text, envelope] = await this.#format.write({ state: to, createdAt: read.createdAt, updatedAt, payload })
    const answer = await this.#cell.compareAndSet(of, before, text, options)
    if (answer.result === 'missing') return answer
    if (answer.result === 'swapped') return { result: 'updated', envelope: this.#remember(envelope, text) }
    return { result: 'differs', current: await this.#open(of, answer.current) }
  }

  /** Deletes the very envelope that was read, if nobody has changed it since. */
  async delete(of: Of, read: Envelope<Payload, State>): Promise<EnvelopeDelete<Envelope<Payload, State>>> {
    const answer = await this.#cell.compareAndDelete(of, this.#textOf(read))
    if (answer.result !== 'differs') return answer
    return { result: 'differs', current: await this.#open(of, answer.current) }
  }

  /** Deletes it, whatever it is. True: there was something. */
  unlink(of: Of): Promise<boolean> {
    return this.#cell.unlink(of)
  }

  ttl(of: Of): Promise<CellTime> {
    return this.#cell.ttl(of)
  }

  async #open(of: Of, text: string): Promise<Envelope<Payload, State>> {
    const read = await this.#format.read(text)
    if (!isUnreadable(read)) return this.#remember(read, text)
    throw this.#unreadable(of, read)
  }

  #unreadable(of: Of, read: Unreadable): HoldfastError {
    tell(this.#context, this.#purpose, read.why === 'damaged' ? 'damaged' : 'version_unknown')
    const { message, facts } = damaged(this.#space.scope(of))
    // What schema and upgrades say can quote values: it stays in the cause.
    if (read.why === 'damaged') return new HoldfastError('value_damaged', message, facts, { cause: read.cause })
    const { oldest, schemaVersion } = this.#format
    const expected = `a version from ${oldest} to ${schemaVersion}`
    return new HoldfastError('version_unknown', `schemaVersion: expected ${expected}, got ${read.version}`, {
      ...facts,
      schemaVersion: read.version,
    })
  }

  #remember(envelope: Envelope<Payload, State>, text: string): Envelope<Payload, State> {
    this.#texts.set(envelope, text)
    return envelope
  }

  #textOf(read: Envelope<Payload, State>): string {
    const text = typeof read === 'object' && read !== null ? this.#texts.get(read) : undefined
    if (text !== undefined) return text
    throw invalid('envelope', 'one as it was read from here', typeof read === 'object' ? 'another' : show(read))
  }

  #checkState(state: unknown): State {
    if (this.#states) return this.#states.check('state', state)
    if (isStateName(state)) return state as State
    throw invalid('state', 'a name of 1 to 64 of A-Z, a-z, 0-9, _, . and -', show(state))
  }
}
