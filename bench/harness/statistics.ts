/** Several measurements of one thing. The median, because one of them may have met somebody else's work. */
export interface Measured {
  readonly median: number
  readonly min: number
  readonly max: number
  readonly rounds: readonly number[]
}

export function measured(rounds: readonly number[]): Measured {
  return { median: median(rounds), min: Math.min(...rounds), max: Math.max(...rounds), rounds }
}

export function median(values: readonly number[]): number {
  if (values.length === 0) return Number.NaN
  const sorted = [...values].sort((a, b) => a - b)
  const half = sorted.length >> 1
  const upper = sorted[half] as number
  return sorted.length % 2 === 1 ? upper : ((sorted[half - 1] as number) + upper) / 2
}

/** How far the rounds lie apart, as a part of the median. */
export const spread = ({ median, min, max }: Measured): number => (max - min) / median

/** Round by round, because noise that met one of them in a round most likely met the other as well. */
export function ratio(of: Measured, to: Measured): Measured {
  return measured(of.rounds.map((value, round) => value / (to.rounds[round] as number)))
}
