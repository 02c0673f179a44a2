import type { Verdict } from '../journal/index.js'

/**
 * Does it show that something is committed? What was appended is; and what is there was, most often by the very append that got no answer, and
 * is where it can't be lost, or it would not be told of. What was refused, or waits for a row, took no commit, and says nothing of whether one would work.
 */
export function hasCommitted({ verdicts }: { readonly verdicts: readonly Verdict[] }): boolean {
  return verdicts.some(({ type }) => type === 'appended' || type === 'there')
}
