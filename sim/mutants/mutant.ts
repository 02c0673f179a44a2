export interface Mutant {
  readonly rule: string
  /** What goes wrong without it. */
  readonly without: string
  readonly patches: readonly { readonly file: string; readonly find: string; readonly replace: string }[]
  /** Caught within so many schedules. */
  readonly within: number
  /** What one of the schedules must say, where the patches leave out something else as well. */
  readonly finds?: RegExp
  /** The first of them, by default seed 1: a little before one that finds it, so that the suite need not look for it each time. */
  readonly from?: number
}

export const LUA = 'packages/holdfast/src/redis/scripts.generated.ts'
export const ENGINE = 'packages/holdfast/src/engine'
export const DATABASE = 'sim/database.ts'
