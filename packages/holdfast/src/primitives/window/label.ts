/** How much of `yyyyMMddHHmmssSSS` tells windows of a size apart. */
const PRECISIONS: readonly (readonly [ms: number, characters: number])[] = [
  [86_400_000, 8],
  [3_600_000, 10],
  [60_000, 12],
  [1_000, 14],
]
const ALL = 17

/** The beginning of a window in UTC: `20260702` where windows are days, `202607021430` where they are minutes, and so on. */
export function labelOf(beginsMs: number, windowMs: number): string {
  const [, characters = ALL] = PRECISIONS.find(([ms]) => windowMs % ms === 0) ?? []
  return new Date(beginsMs).toISOString().replaceAll(/\D/g, '').slice(0, characters)
}

/** What stands in the key: a minute and five minutes may begin together, and are two windows all the same. */
export const windowPart = (beginsMs: number, windowMs: number): string => `${windowMs}:${labelOf(beginsMs, windowMs)}`
