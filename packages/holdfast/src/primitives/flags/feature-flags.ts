import { HoldfastError } from '../../errors/index.js'
import { flag as checkBoolean, integer, invalid, namesOf, options as optionsOf, show, text } from '../../input/index.js'
import { type Context, durable, note, tell } from '../context.js'
import { durationMs } from '../keys.js'
import type { Primitives } from '../primitives.js'
import { checkChanges, checkDefinition, checkName } from './check.js'
import { FlagCopy } from './copy.js'
import type { Flag, FlagDefinition, FlagInput } from './definition.js'
import { decided, type FlagAttributes, judge, type Verdict } from './judge.js'
import { type FlagChangeKind, type FlagEvent, FlagStore, type StoredChange } from './store.js'
import { type FlagsStanding, FlagWatch } from './watch.js'

export interface FeatureFlagsOptions {
  /** How far a process may be behind Postgres, while that and Redis answer. Default 5 s. */
  readonly stalenessMs?: number
  /**
   * For how long the last known flags are gone by when nobody can ask Postgres any more; then the defaults. At least `stalenessMs`. Default:
   * for as long as it takes.
   */
  readonly lastKnownForMs?: number
  /** What a flag is that there is not, or that could not be read. Off where it is not named. Given: `ready` needs no server. */
  readonly defaults?: Readonly<Record<string, boolean>>
}

const OPTION_NAMES = namesOf<FeatureFlagsOptions>({ stalenessMs: true, lastKnownForMs: true, defaults: true })

/** For the history. */
export interface FlagAuthor {
  /** Who changes it. */
  readonly by: string
  readonly why?: string
  /** Only if this is its version: 0 if there is none. Otherwise `conflict`. */
  readonly version?: number
}

const AUTHOR_NAMES = namesOf<FlagAuthor>({ by: true, why: true, version: true })

export type FlagChange =
  | {
      /** `unchanged`: it was so already, and nothing was written. */
      readonly result: 'changed' | 'unchanged'
      /** As it is now; null: it is deleted. */
      readonly flag: Flag | null
      /** False: Redis could not be told, so that others learn it a little later, within the bound. */
      readonly announced: boolean
    }
  /** It has another version than was expected: somebody else was first. */
  | { readonly result: 'conflict'; readonly flag: Flag | null }
  /** There is no such flag. */
  | { readonly result: 'missing' }

export interface FlagAnswer extends Verdict {
  /** Of the flag that was asked; null: there is none. */
  readonly version: number | null
  /** For how long nobody has asked Postgres whether the flags are still so. */
  readonly ageMs: number | null
}

export interface FlagHistoryCall {
  /** Of this flag alone. */
  readonly name?: string
  /** From before this change: `revision` of the last one that was read. */
  readonly before?: number
  /** Default 100. */
  readonly limit?: number
}

const HISTORY_NAMES = namesOf<FlagHistoryCall>({ name: true, before: true, limit: true })

const STALENESS_MS = 5_000
const STALENESS_MIN_MS = 80
const STALENESS_MAX_MS = 3_600_000
const SUBJECT_MAX = 1_024
const WHY_MAX = 1_000
const HISTORY_MAX = 1_000
const CHANGE_TRIES = 10

/**
 * Feature flags of a tenant. Postgres has the truth and the history, Redis a copy, and each process that has called `ready` all of them in
 * its memory: an answer is a look there, and asks nobody.
 */
export class FeatureFlags {
  readonly stalenessMs: number
  readonly lastKnownForMs: number
  readonly #context: Context
  readonly #defaults: ReadonlyMap<string, boolean> | null
  readonly #store: FlagStore
  readonly #copy: FlagCopy
  readonly #watch: FlagWatch

  constructor({ context }: Primitives, options: FeatureFlagsOptions = {}) {
    const given = optionsOf('options', options, OPTION_NAMES)
    this.stalenessMs = durationMs('stalenessMs', given.stalenessMs ?? STALENESS_MS, STALENESS_MIN_MS, STALENESS_MAX_MS)
    this.lastKnownForMs = forMs(given.lastKnownForMs, this.stalenessMs)
    this.#defaults = given.defaults === undefined ? null : checkDefaults(given.defaults)
    this.#context = context
    this.#store = new FlagStore(durable(context, 'what flags are'), context.tenant)
    this.#copy = new FlagCopy(context)
    this.#watch = new FlagWatch(context, this.#store, this.#copy, this.stalenessMs)
  }

  /**
   * Reads the flags and keeps up with them from now on, until `close`. Rejects as `unavailable` when neither Redis nor Postgres has them to
   * give, unless defaults were declared; it goes on trying either way.
   */
  async ready(): Promise<void> {
    await this.#watch.start().catch((error) => {
      if (this.#defaults === null) throw error
    })
  }

  close(): void {
    this.#watch.stop()
  }

  /** What this process knows, and how old that is. */
  get standing(): FlagsStanding {
    return this.#watch.standing
  }

  /** At once. The subject is whom or what it is on for: a user, an account, a device. It is hashed for the answer, and kept nowhere. */
  isOn(name: string, subject?: string, attributes: FlagAttributes = {}): boolean {
    return this.#answer(name, subject, attributes).on
  }

  /** The same, with why. */
  explain(name: string, subject?: string, attributes: FlagAttributes = {}): FlagAnswer {
    const verdict = this.#answer(name, subject, attributes)
    const version = this.#watch.flags?.get(name)?.version ?? null
    return { ...verdict, version, ageMs: this.#watch.ageMs }
  }

  /** The same for the flag as Postgres has it now, for one who looks after flags. Needs no `ready`. */
  async check(name: string, subject?: string, attributes: FlagAttributes = {}): Promise<FlagAnswer> {
    checkAsked(name, subject, attributes)
    const flag = await this.get(name)
    const verdict = flag ? judge(flag, subject, attributes) : decided(this.#default(name), 'unknown')
    return { ...verdict, version: flag?.version ?? null, ageMs: 0 }
  }

  /** As Postgres has them now, by name. */
  async list(): Promise<Flag[]> {
    return [...(await this.#store.read()).flags]
  }

  async get(name: string): Promise<Flag | null> {
    return (await this.#store.read(checkName(name))).flags[0] ?? null
  }

  /** Makes it what is given, or makes one. Whether it is killed stays. */
  put(name: string, flag: FlagInput, author: FlagAuthor): Promise<FlagChange> {
    return this.#change(name, 'put', checkDefinition(flag), author)
  }

  /** Makes some of it different, and leaves the rest as it is. */
  async change(name: string, changes: Partial<FlagDefinition>, author: FlagAuthor): Promise<FlagChange> {
    const different = checkChanges(changes)
    const asked = checkAuthor(author)
    for (let tries = 1; ; tries += 1) {
      const flag = await this.get(name)
      if (flag === null) return this.#told(name, 'put', { result: 'missing' })
      if (asked.version !== null && asked.version !== flag.version)
        return this.#told(name, 'put', { result: 'conflict', flag })
      const { on, percentage, rules, description, version } = flag
      const definition = { on, percentage, rules, description, ...different }
      const changed = await this.#change(name, 'put', definition, { ...author, version })
      // Somebody else changed it in between, perhaps another part of it.
      if (changed.result !== 'conflict' || tries === CHANGE_TRIES) return changed
    }
  }

  /** Off for everybody, before anything else that it says, until `unkill`. */
  kill(name: string, author: FlagAuthor): Promise<FlagChange> {
    return this.#change(name, 'kill', null, author)
  }

  unkill(name: string, author: FlagAuthor): Promise<FlagChange> {
    return this.#change(name, 'unkill', null, author)
  }

  /** Its history stays. */
  delete(name: string, author: FlagAuthor): Promise<FlagChange> {
    return this.#change(name, 'delete', null, author)
  }

  /** Every change that was made, the latest first. */
  async history(call: FlagHistoryCall = {}): Promise<FlagEvent[]> {
    const { name, before, limit } = optionsOf('options', call, HISTORY_NAMES)
    return this.#store.history(
      name === undefined ? null : checkName(name),
      before === undefined ? null : integer('before', before, 1, Number.MAX_SAFE_INTEGER),
      integer('limit', limit ?? 100, 1, HISTORY_MAX),
    )
  }

  #answer(name: string, subject: string | undefined, attributes: FlagAttributes): Verdict {
    checkAsked(name, subject, attributes)
    const { flags, ageMs } = this.#watch
    if (flags === null) {
      if (this.#defaults) return decided(this.#default(name), 'unread')
      throw new HoldfastError('unavailable', 'No flags were read yet: wait for ready(), or declare defaults')
    }
    if (ageMs !== null && ageMs > this.lastKnownForMs) return decided(this.#default(name), 'too_old')
    const flag = flags.get(name)
    return flag ? judge(flag, subject, attributes) : decided(this.#default(name), 'unknown')
  }

  #default(name: string): boolean {
    return this.#defaults?.get(name) ?? false
  }

  async #change(
    name: string,
    kind: FlagChangeKind,
    definition: FlagDefinition | null,
    author: FlagAuthor,
  ): Promise<FlagChange> {
    const change = { name: checkName(name), kind, definition, ...checkAuthor(author) }
    return this.#told(name, kind, await this.#store.change(change))
  }

  async #told(name: string, kind: FlagChangeKind, change: StoredChange): Promise<FlagChange> {
    const { result } = change
    tell(this.#context, 'flags', result)
    if (change.result === 'missing' || change.result === 'conflict') return change
    if (result === 'changed') note(this.#context, 'flag_changed', this.#copy.scope, { flag: name, change: kind })
    // Also where it was so already: whoever asks again may have lost the answer, and with it the announcement.
    return { ...change, announced: await this.#announce() }
  }

  /** What was changed is changed: that Redis, or a second answer of Postgres, is missing makes it known later, not less. */
  async #announce(): Promise<boolean> {
    const askedAt = performance.now()
    try {
      const read = await this.#store.read()
      this.#watch.adopt(read, askedAt)
      await this.#copy.announce(read, performance.now() - askedAt)
      return true
    } catch {
      return false
    }
  }
}

function checkAsked(name: unknown, subject: unknown, attributes: unknown): void {
  if (typeof name !== 'string') throw invalid('name', 'a string', show(name))
  if (subject !== undefined) text('subject', subject, SUBJECT_MAX)
  if (typeof attributes !== 'object' || attributes === null) throw invalid('attributes', 'an object', show(attributes))
}

function checkAuthor(author: unknown): { by: string; why: string | null; version: number | null } {
  const { by, why, version } = optionsOf('options', author, AUTHOR_NAMES)
  return {
    by: text('by', by),
    why: why === undefined ? null : text('why', why, WHY_MAX),
    version: version === undefined ? null : integer('version', version, 0, Number.MAX_SAFE_INTEGER),
  }
}

function checkDefaults(value: unknown): ReadonlyMap<string, boolean> {
  const given = Object.entries(optionsOf('defaults', value))
  return new Map(given.map(([name, on]) => [checkName(name), checkBoolean('defaults', on)]))
}

/** Flags that are as fresh as they are to be must not be too old. */
const forMs = (value: unknown, stalenessMs: number): number =>
  value === undefined || value === Number.POSITIVE_INFINITY
    ? Number.POSITIVE_INFINITY
    : durationMs('lastKnownForMs', value, stalenessMs)
