import { flag, integer, invalid, namesOf, oneOf, options as optionsOf, show } from '../../input/index.js'
import { limitsConsume, limitsPeek, limitsRefund } from '../../redis/scripts.generated.js'
import { type Context, tell } from '../context.js'
import { KeySpace, type Scope } from '../keys.js'
import type { Primitives } from '../primitives.js'
import { instantArg } from '../time.js'
import { type LimitAnswer, LimitCalls, type LimitState, type Standing } from './limit-calls.js'
import { bucketTerms, fixedTerms, logTerms, slidingTerms, type Terms } from './terms.js'

interface About {
  /**
   * Whom it is about: the scope of a call, or within that the one whom the call names in `subjects`. The scope is then a group, and all of
   * a group is on one node. Default `'scope'`.
   */
  readonly per?: 'scope' | 'subject'
}

/** As a `TokenBucket`. */
export interface BucketLimit extends About {
  readonly kind: 'bucket'
  readonly capacity: number
  readonly refillMs: number
  readonly refill?: number
  readonly bufferMs?: number
}

/** As a `SlidingWindow` with a limit. */
export interface SlidingLimit extends About {
  readonly kind: 'sliding'
  readonly limit: number
  readonly windowMs: number
  readonly exact?: boolean
  readonly bufferMs?: number
}

/** Within windows that begin at multiples of `windowMs`, in UTC. */
export interface FixedLimit extends About {
  readonly kind: 'fixed'
  readonly limit: number
  readonly windowMs: number
  readonly bufferMs?: number
}

export type Limit = BucketLimit | SlidingLimit | FixedLimit

export interface LimitsCall<Name extends string> {
  /** In all limits, or in each by its name: 1 where none is given. What costs nothing in a limit is not held up by it. */
  readonly cost?: number | Partial<Readonly<Record<Name, number>>>
  /** Whom each of the limits that are `per: 'subject'` is about. None of them may be left out: it would count against the whole group. */
  readonly subjects?: Partial<Readonly<Record<Name, string | readonly string[]>>>
  /** When it happens. Default now, by the clock of Redis. */
  readonly at?: Date
}

const LIMIT_NAMES = {
  bucket: namesOf<BucketLimit>({ kind: true, per: true, capacity: true, refillMs: true, refill: true, bufferMs: true }),
  sliding: namesOf<SlidingLimit>({ kind: true, per: true, limit: true, windowMs: true, exact: true, bufferMs: true }),
  fixed: namesOf<FixedLimit>({ kind: true, per: true, limit: true, windowMs: true, bufferMs: true }),
}
const CALL_NAMES = namesOf<LimitsCall<string>>({ cost: true, subjects: true, at: true })
const RESET_NAMES = namesOf<Pick<LimitsCall<string>, 'subjects'>>({ subjects: true })

export interface LimitsAnswer<Name extends string> {
  /** False: at least one limit refused, and nothing was taken from any. */
  readonly allowed: boolean
  readonly refusedBy: readonly Name[]
  /** When all of them would allow the same call, if nobody else comes before; 0: they do. */
  readonly retryAfterMs: number
  /** What each of them says by itself. */
  readonly limits: Readonly<Record<Name, LimitAnswer>>
}

const NAME = /^[A-Za-z0-9_-]{1,32}$/
const LIMITS_MAX = 8
const SCRIPTS = { consume: limitsConsume, peek: limitsPeek, refund: limitsRefund }

/** Several limits of one scope, decided together: either all of them let a call pass, or none of them is charged. */
export class Limits<Name extends string> {
  readonly #context: Context
  readonly #space: KeySpace
  readonly #terms: ReadonlyMap<Name, Terms>
  /** Those that are about a subject of a call. */
  readonly #perSubject: ReadonlySet<string>
  readonly #calls: LimitCalls

  constructor({ context }: Primitives, operation: string, limits: Readonly<Record<Name, Limit>>) {
    const given = Object.entries(optionsOf('limits', limits))
    if (given.length < 1 || given.length > LIMITS_MAX) {
      throw invalid('limits', `1 to ${LIMITS_MAX} limits by their names`, `${given.length}`)
    }
    this.#terms = new Map(given.map(([name, limit]) => [checkName(name) as Name, termsOf(limit)]))
    this.#perSubject = new Set(given.filter(([, limit]) => isPerSubject(limit)).map(([name]) => name))
    this.#context = context
    this.#space = new KeySpace(context, 'limits', operation)
    this.#calls = new LimitCalls(context, 'limits', SCRIPTS, [...this.#terms.values()])
  }

  /** Takes from all limits if all of them allow it. Otherwise nothing changes. */
  async consume(scope: string | readonly string[], call: LimitsCall<Name> = {}): Promise<LimitsAnswer<Name>> {
    const answer = this.#answer(await this.#ask('consume', scope, call))
    tell(this.#context, 'limits', answer.allowed ? 'allowed' : 'refused')
    return answer
  }

  /** What `consume` would say. */
  async peek(scope: string | readonly string[], call: LimitsCall<Name> = {}): Promise<LimitsAnswer<Name>> {
    return this.#answer(await this.#ask('peek', scope, call))
  }

  /** Gives back to all limits what was not needed after all, never more than was taken. */
  async refund(
    scope: string | readonly string[],
    call: LimitsCall<Name> = {},
  ): Promise<Readonly<Record<Name, LimitState>>> {
    const standings = await this.#ask('refund', scope, call)
    tell(this.#context, 'limits', 'refunded')
    return this.#byName(standings, ({ left, resetAfterMs }): LimitState => ({ left, resetAfterMs }))
  }

  /** Forgets what was taken from all limits. True: there was something to forget. */
  async reset(scope: string | readonly string[], call: Pick<LimitsCall<Name>, 'subjects'> = {}): Promise<boolean> {
    const of = this.#space.scope(scope)
    const forgotten = await this.#calls.reset(of, this.#keys(of, optionsOf('options', call, RESET_NAMES).subjects))
    tell(this.#context, 'limits', 'reset')
    return forgotten
  }

  async #ask(
    what: 'consume' | 'peek' | 'refund',
    scope: string | readonly string[],
    call: LimitsCall<Name>,
  ): Promise<Standing[]> {
    const { cost, subjects, at } = optionsOf('options', call, CALL_NAMES)
    const costs = this.#costs(cost ?? 1, what === 'refund')
    const atMs = instantArg('at', at)
    const of = this.#space.scope(scope)
    return this.#calls[what](of, this.#keys(of, subjects), costs, atMs)
  }

  #costs(given: unknown, mayPassMax: boolean): number[] {
    const isOfAll = typeof given !== 'object'
    const each = named('cost', isOfAll ? {} : given, this.#terms, 'limits')
    return [...this.#terms].map(([name, { max }]) => {
      const cost = isOfAll ? given : (each.get(name) ?? 1)
      return integer(`cost of ${name}`, cost, 0, mayPassMax ? Number.MAX_SAFE_INTEGER : max)
    })
  }

  #keys(of: Scope, given: unknown): string[] {
    const subjects = named('subjects', given, this.#perSubject, "limits that are per: 'subject'")
    return [...this.#terms].map(([name, { part }]) => {
      if (!this.#perSubject.has(name)) return of.key(`${name}:${part}`)
      // Checked as it is hashed.
      return of.key(`${name}:${this.#space.hash(subjects.get(name) as string, `subject of ${name}`)}:${part}`)
    })
  }

  #answer(standings: readonly Standing[]): LimitsAnswer<Name> {
    const names = [...this.#terms.keys()]
    const refusedBy = names.filter((_, i) => !standings[i]?.allowed)
    return {
      allowed: refusedBy.length === 0,
      refusedBy,
      retryAfterMs: Math.max(...standings.map(({ retryAfterMs }) => retryAfterMs)),
      limits: this.#byName(standings, ({ used: _, ...answer }): LimitAnswer => answer),
    }
  }

  #byName<T>(standings: readonly Standing[], tellOf: (standing: Standing) => T): Readonly<Record<Name, T>> {
    const entries = [...this.#terms.keys()].map((name, i) => [name, tellOf(standings[i] as Standing)])
    return Object.fromEntries(entries) as Record<Name, T>
  }
}

/** A map, because an object has more names than were given to it: `constructor`. */
function named(
  what: string,
  given: unknown,
  known: { has(name: string): boolean },
  of: string,
): ReadonlyMap<string, unknown> {
  const all = new Map(Object.entries(optionsOf(what, given)))
  for (const name of all.keys()) {
    if (!known.has(name)) throw invalid(what, `only names of ${of}`, `${show(name)} that is none`)
  }
  return all
}

const isPerSubject = (limit: unknown): boolean =>
  oneOf('per', optionsOf('limit', limit).per ?? 'scope', ['scope', 'subject']) === 'subject'

function checkName(name: string): string {
  if (NAME.test(name)) return name
  throw invalid('the name of a limit', '1 to 32 characters of A-Z, a-z, 0-9, _ and -', show(name))
}

function termsOf(limit: unknown): Terms {
  const kind = oneOf('kind', optionsOf('limit', limit).kind, ['bucket', 'sliding', 'fixed'])
  const given = optionsOf('limit', limit, LIMIT_NAMES[kind])
  switch (kind) {
    case 'bucket':
      return bucketTerms(given)
    case 'fixed':
      return fixedTerms(given)
    case 'sliding':
      return flag('exact', given.exact) ? logTerms(given) : slidingTerms(given)
  }
}
