import { expect, vi } from 'vitest'
import type { Summary } from '../../checker.js'
import type { Place } from '../../places.js'
import { Trial, type TrialOptions, type Verdict } from '../../trial.js'

// A trial has bounds of its own, for each of its steps.
vi.setConfig({ testTimeout: 400_000, hookTimeout: 240_000 })

/** Does its worst to a trial, and finds every promise kept. */
export async function tried(
  place: Place,
  inflict: (trial: Trial) => Promise<void>,
  options: Partial<TrialOptions> = {},
): Promise<Verdict> {
  const trial = await Trial.begin(place, { seed: 20_261_115, ...options })
  try {
    await inflict(trial)
    const verdict = await trial.finish()
    expect(verdict.problems).toEqual([])
    expect(verdict.summary.answers.yes).toBeGreaterThan(200)
    return verdict
  } finally {
    await trial.stop()
  }
}

/** Answers that leave a caller without knowing, and calls without any. */
export function unknowns({ answers }: Summary): Record<string, number> {
  return Object.fromEntries(Object.entries(answers).filter(([name]) => name.startsWith('unknown') || name === 'none'))
}
