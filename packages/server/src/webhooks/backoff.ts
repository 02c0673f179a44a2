/** Twice as long each time, up to a bound. Some of it is chance: those who were turned away together must not come back together. */
export const backoffMs = (tries: number, firstMs: number, maxMs: number): number =>
  Math.round((0.5 + Math.random() / 2) * Math.min(maxMs, firstMs * 2 ** Math.min(tries - 1, 30)))
