import type { Verdict } from '../journal/index.js'

/** Was anything written? What was there before, or was refused, or waits for a row, took no commit, and says nothing of whether one would work. */
export function hasAppended({ verdicts }: { readonly verdicts: readonly Verdict[] }): boolean {
  return verdicts.some(({ type }) => type === 'appended')
}
