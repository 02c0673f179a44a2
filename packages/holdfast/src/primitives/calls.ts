import { HoldfastError } from '../errors/index.js'
import { type Script, type ScriptArg, ScriptError } from '../redis/index.js'
import { type Context, tell } from './context.js'
import type { Purpose, Scope } from './keys.js'

interface Waiting {
  readonly scope: Scope
  readonly keys: readonly string[]
  readonly args: readonly ScriptArg[]
  readonly resolve: (answer: unknown) => void
  readonly reject: (error: unknown) => void
}

/**
 * Most that go in one call: while a script runs, the server serves nobody else. With all of 64 callers in one call Node and Redis would take
 * turns, in calls of 32 they work at the same time.
 */
export const CALL_MAX = 32

/**
 * Calls of one script. Those of one turn of the event loop go together, and each is done by itself and gets an answer of its own; on a
 * Cluster only those of one slot do, because a call can't leave it. Who is alone does not wait for company: a call leaves at the end
 * of the turn that it was made in.
 *
 * The script takes them as `primitives/each.lua` says: their number, then for each as many keys and as many arguments as for the others.
 */
export class Calls {
  readonly #context: Context
  readonly #purpose: Purpose
  readonly #script: Script
  readonly #callMax: number
  #waiting: Waiting[] = []
  readonly #send = () => this.#sendAll()

  /** `callMax`: for what is so large that fewer should go together. */
  constructor(context: Context, purpose: Purpose, script: Script, callMax = CALL_MAX) {
    this.#context = context
    this.#purpose = purpose
    this.#script = script
    this.#callMax = Math.min(callMax, CALL_MAX)
  }

  /** The answer: bytes, a number, or an array of them. */
  add(scope: Scope, keys: readonly string[], args: readonly ScriptArg[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      // Comes after the microtasks: callers that were answered together ask together again.
      if (this.#waiting.length === 0) process.nextTick(this.#send)
      this.#waiting.push({ scope, keys, args, resolve, reject })
    })
  }

  #sendAll(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const group of this.#context.isCluster ? bySlot(waiting) : [waiting]) {
      for (let from = 0; from < group.length; from += this.#callMax) {
        void this.#call(group.slice(from, from + this.#callMax))
      }
    }
  }

  async #call(calls: readonly Waiting[]): Promise<void> {
    const keys: string[] = []
    const args: ScriptArg[] = [calls.length]
    for (const call of calls) {
      keys.push(...call.keys)
      args.push(...call.args)
    }
    try {
      const answers = (await this.#context.runner.run(this.#script, keys, args)) as unknown[]
      for (const [at, call] of calls.entries()) this.#answer(call, answers[at])
    } catch (error) {
      const failure = error instanceof ScriptError ? broken(this.#script.name, error.message) : error
      tell(this.#context, this.#purpose, 'unavailable', calls.length)
      for (const { reject } of calls) reject(failure)
    }
  }

  #answer({ scope, resolve, reject }: Waiting, answer: unknown): void {
    if (!isFailure(answer)) return resolve(answer)
    const why = String(answer[1])
    if (why === 'LAYOUT') {
      tell(this.#context, this.#purpose, 'mismatch')
      return reject(mismatch(scope))
    }
    if (!isDamage(why)) return reject(broken(this.#script.name, why))
    tell(this.#context, this.#purpose, 'damaged')
    reject(damaged(scope))
  }
}

/** One call by itself, of a script that does not take several: with as many keys and arguments as it likes. */
export async function callOnce(
  context: Context,
  scope: Scope,
  script: Script,
  keys: readonly string[],
  args: readonly ScriptArg[],
): Promise<unknown> {
  const { purpose } = scope.space
  try {
    return await context.runner.run(script, keys, args)
  } catch (error) {
    const why = error instanceof ScriptError ? error.message.slice(`script ${script.name}: `.length) : null
    const isDamaged = why !== null && isDamage(why)
    tell(context, purpose, isDamaged ? 'damaged' : 'unavailable')
    throw why === null ? error : isDamaged ? damaged(scope) : broken(script.name, why)
  }
}

/** Errors of Redis begin with a word that says what they are, and so does `damaged()` of `primitives/each.lua`. */
const isDamage = (why: string): boolean => why.startsWith('WRONGTYPE') || why.startsWith('DAMAGED')

/** As `primitives/each.lua` tells of one that failed. */
const isFailure = (answer: unknown): answer is [unknown, unknown] =>
  Array.isArray(answer) && answer[0] instanceof Buffer && answer[0].toString('latin1') === '!'

/** In the order in which they came, those of one slot of a Cluster together. */
export function bySlot<T extends { readonly scope: Scope }>(all: readonly T[]): T[][] {
  const groups = new Map<number, T[]>()
  for (const one of all) {
    const { slot } = one.scope
    const group = groups.get(slot)
    if (group === undefined) groups.set(slot, [one])
    else group.push(one)
  }
  return [...groups.values()]
}

/** Under the key is what this primitive does not write. */
export function damaged({ facts }: Scope): HoldfastError {
  const { redisPattern, operation, keyHashPrefix } = facts
  return new HoldfastError(
    'value_damaged',
    `${redisPattern}, ${operation}, ${keyHashPrefix}…: expected what this primitive writes, got something else`,
    { redisPattern, operation, keyHashPrefix },
  )
}

/** Under the key is what another layout of the same version has written. */
function mismatch({ facts: { redisPattern, operation, keyHashPrefix } }: Scope): HoldfastError {
  const message = `${redisPattern}, ${operation}, ${keyHashPrefix}…: expected what this layout writes, got what another one has written under its version`
  return new HoldfastError('layout_mismatch', message, { redisPattern, operation, keyHashPrefix })
}

/** Of JSON that this primitive has written under a scope. */
export function readJson(context: Context, scope: Scope, json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    tell(context, scope.space.purpose, 'damaged')
    throw damaged(scope)
  }
}

const broken = (script: string, why: string): HoldfastError =>
  new HoldfastError('internal_error', `script ${script}: ${why.slice(0, 300)}`)
