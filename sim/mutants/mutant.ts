export interface Mutant {
  readonly rule: string
  /** What goes wrong without it. */
  readonly without: string
  readonly patches: readonly { readonly file: string; readonly find: string; readonly replace: string }[]
  /** Caught within so many schedules, from seed 1 on. */
  readonly within: number
}

export const LUA = 'packages/holdfast/src/redis/scripts.generated.ts'
export const ENGINE = 'packages/holdfast/src/engine'
export const DATABASE = 'sim/database.ts'
