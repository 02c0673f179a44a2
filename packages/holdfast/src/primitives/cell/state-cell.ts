import { invalid, namesOf, options as optionsOf, show } from '../../input/index.js'
import { cellTransition } from '../../redis/scripts.generated.js'
import { Calls, damaged } from '../calls.js'
import { type Context, note, tell } from '../context.js'
import { KeySpace, type Purpose, type Scope } from '../keys.js'
import { type Lifetime, purposeFor } from '../lifetime.js'
import type { Primitives } from '../primitives.js'
import { Cell, endOf, type SwapOptions } from './cell.js'
import type { CellTime, Missing } from './results.js'
import { States, type Transitions } from './states.js'

export interface StateCellOptions<State extends string> {
  /** How long a state stays when a call says nothing else. `none`: until it is deleted; that has to be said. */
  readonly ttlMs: Lifetime
  readonly states: Transitions<State>
}

const OPTION_NAMES = namesOf<StateCellOptions<string>>({ ttlMs: true, states: true })
const CALL_NAMES = namesOf<SwapOptions>({ ttlMs: true })

export type StateStart<State> =
  | { readonly result: 'started' }
  /** It was started before, and is in this state now. */
  | { readonly result: 'exists'; readonly state: State }

export type StateChange<State> =
  | { readonly result: 'transitioned'; readonly from: State }
  /** From the state that it is in one does not come to that one; nothing was changed. */
  | { readonly result: 'wrong_state'; readonly state: State }
  | Missing

type Of = string | readonly string[]

/** A cell whose value is a state, and that goes from one to the next only as its machine says. */
export class StateCell<State extends string> {
  readonly #cell: Cell
  readonly #states: States<State>
  readonly #context: Context
  readonly #purpose: Purpose
  readonly #space: KeySpace
  readonly #transition: Calls

  constructor(primitives: Primitives, operation: string, options: StateCellOptions<State>) {
    const { ttlMs, states } = optionsOf('options', options, OPTION_NAMES)
    this.#states = new States(states as Transitions<State>)
    this.#cell = new Cell(primitives, operation, { ttlMs: ttlMs as Lifetime })
    this.#context = primitives.context
    this.#purpose = purposeFor('cell', this.#cell.ttlMs)
    this.#space = new KeySpace(this.#context, this.#purpose, operation)
    this.#transition = new Calls(this.#context, this.#purpose, cellTransition)
  }

  /** Begins with a state, where there is none. */
  async start(of: Of, state: State, options: { readonly ttlMs?: number } = {}): Promise<StateStart<State>> {
    this.#states.check('state', state)
    const { ttlMs } = optionsOf('options', options, CALL_NAMES)
    if (ttlMs === 'keep') throw invalid('ttlMs', 'milliseconds', show(ttlMs))
    const answer = await this.#cell.set(of, state, { ...options, when: 'missing' })
    if (answer.result === 'written') return { result: 'started' }
    return { result: 'exists', state: this.#known(of, answer.current as string) }
  }

  /** To a state, if it is in one from which one comes to that. The end stays as it is unless another is given. */
  async transition(of: Of, to: State, options: SwapOptions = {}): Promise<StateChange<State>> {
    const before = this.#states.before(this.#states.check('to', to))
    const ends = endOf(optionsOf('options', options, CALL_NAMES).ttlMs) ?? 'keep'
    const scope = this.#space.scope(of)
    const answer = await this.#transition.add(scope, [scope.base], [to, ends, ` ${before.join(' ')} `])
    const [result, state] = (answer as Buffer[]).map(String)
    if (result === 'missing') return this.#told(scope, { result })
    const from = this.#known(of, state as string)
    return this.#told(scope, result === 'transitioned' ? { result, from } : { result: 'wrong_state', state: from })
  }

  /** Null: nothing was started, or it has ended. */
  async get(of: Of): Promise<State | null> {
    const state = await this.#cell.get(of)
    return state === null ? null : this.#known(of, state)
  }

  ttl(of: Of): Promise<CellTime> {
    return this.#cell.ttl(of)
  }

  /** Deletes it, whatever its state. True: there was something. */
  unlink(of: Of): Promise<boolean> {
    return this.#cell.unlink(of)
  }

  #told(scope: Scope, change: StateChange<State>): StateChange<State> {
    tell(this.#context, this.#purpose, change.result)
    if (change.result === 'wrong_state') note(this.#context, 'cell_wrong_state', scope)
    return change
  }

  /** A state that the machine does not have was written by another one, or by nobody who should. */
  #known(of: Of, state: string): State {
    if (this.#states.has(state)) return state
    tell(this.#context, this.#purpose, 'damaged')
    throw damaged(this.#space.scope(of))
  }
}
