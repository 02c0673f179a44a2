import { invalid, show } from '../../input/index.js'

/** Each state, and those that come after it. A final one has none: `{ PROCESSING: ['COMPLETED', 'FAILED'], FAILED: ['PROCESSING'], COMPLETED: [] }`. */
export type Transitions<State extends string> = Readonly<Record<State, readonly NoInfer<State>[]>>

const NAME = /^[A-Za-z0-9_.-]{1,64}$/
const STATES_MAX = 64

export const isStateName = (name: unknown): name is string => typeof name === 'string' && NAME.test(name)

/** A small machine: which states there are, and from which one comes to which. */
export class States<State extends string> {
  readonly #after: ReadonlyMap<string, readonly string[]>

  constructor(transitions: Transitions<State>) {
    if (typeof transitions !== 'object' || transitions === null || Array.isArray(transitions)) {
      throw invalid('states', 'states, each with those that come after it', show(transitions))
    }
    this.#after = new Map(Object.entries<readonly string[]>(transitions))
    const names = [...this.#after.keys()]
    if (names.length === 0 || names.length > STATES_MAX)
      throw invalid('states', `1 to ${STATES_MAX}`, `${names.length}`)
    for (const name of names) {
      if (!isStateName(name)) throw invalid('states', 'names of 1 to 64 of A-Z, a-z, 0-9, _, . and -', show(name))
    }
    for (const next of this.#after.values()) {
      if (!Array.isArray(next)) throw invalid('states', 'an array after each', show(next))
      for (const name of next) if (!this.has(name)) throw invalid('states', 'only such as are listed', show(name))
    }
  }

  has(name: unknown): name is State {
    return typeof name === 'string' && this.#after.has(name)
  }

  check(argument: string, name: unknown): State {
    if (this.has(name)) return name
    throw invalid(argument, [...this.#after.keys()].join(' or '), show(name))
  }

  may(from: State, to: State): boolean {
    return this.#after.get(from)?.includes(to) ?? false
  }

  /** From which one comes to it. */
  before(to: State): State[] {
    return [...this.#after.keys()].filter((from) => this.may(from as State, to)) as State[]
  }
}
