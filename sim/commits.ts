import type { Entry } from '../packages/holdfast/src/machine/index.js'

/** When an entry was accepted into the journal: the first time, and the last. */
export interface Commit {
  readonly first: number
  readonly last: number
}

/** Were all of them in the journal by then? */
export function isThereBy(
  time: number,
  entries: readonly (Entry | null)[],
  commits: ReadonlyMap<string, Commit>,
): boolean {
  return entries.every((entry) => (commits.get(entry?.hash ?? '')?.first ?? Number.POSITIVE_INFINITY) <= time)
}
