import { HoldfastError } from '../../errors/index.js'
import { invalid, show } from '../../input/index.js'
import { bySlot, CALL_MAX } from '../calls.js'
import type { Context } from '../context.js'
import type { KeySpace, Scope } from '../keys.js'
import { inLanes } from '../lanes.js'
import type { Failed, OneOfMany } from './results.js'

/** Calls of one batch under way: more would take the room of others. On a single server each carries 32. */
const LANES = { single: 2, cluster: 64 }

/** Ends the whole batch, where what fails with one is told in its place. */
export class TooMuch extends HoldfastError {
  constructor(name: string, max: number, unit: string, got: string) {
    super('too_large', `${name}: expected at most ${max} ${unit}, got ${got}`, { max })
  }
}

export function scopesOf(space: KeySpace, many: unknown, max: number): Scope[] {
  if (!Array.isArray(many)) throw invalid('scopes', 'an array', show(many))
  if (many.length > max) throw new TooMuch('scopes', max, 'of them', `${many.length}`)
  const scopes = many.map((of) => space.scope(of))
  const { size } = new Set(scopes.map(({ hash }) => hash))
  // In which order two of one scope would be done is nobody's to say.
  if (size < scopes.length) throw invalid('scopes', 'each only once', `one ${scopes.length - size + 1} times`)
  return scopes
}

/** Does `act` for each scope, and gathers what became of it in their order. Those of one slot, or on a single server 32, are one call. */
export async function forMany<Result>(
  { isCluster }: Context,
  scopes: readonly Scope[],
  act: (scope: Scope, at: number) => Promise<Result>,
): Promise<OneOfMany<Result>[]> {
  const results: OneOfMany<Result>[] = []
  const all = scopes.map((scope, at) => ({ scope, at }))
  const groups = isCluster ? bySlot(all) : chunks(all)
  await inLanes(groups, isCluster ? LANES.cluster : LANES.single, async (group) => {
    await Promise.all(
      group.map(async ({ scope, at }) => {
        results[at] = await act(scope, at).catch(failed)
      }),
    )
  })
  return results
}

function failed(error: unknown): Failed {
  if (error instanceof TooMuch || !(error instanceof HoldfastError)) throw error
  return { result: 'failed', error }
}

function chunks<T>(all: readonly T[]): T[][] {
  return Array.from({ length: Math.ceil(all.length / CALL_MAX) }, (_, n) => all.slice(n * CALL_MAX, (n + 1) * CALL_MAX))
}
