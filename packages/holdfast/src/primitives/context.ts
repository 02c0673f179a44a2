import type { KeyObject } from 'node:crypto'
import { invalid } from '../input/index.js'
import type { HeldLeases } from '../lock/index.js'
import type { Postgres } from '../postgres/index.js'
import type { ScriptRunner } from '../redis/index.js'
import type { Telemetry } from '../telemetry/index.js'
import { connected, type KeysOptions, type Purpose, type Scope } from './keys.js'

/** What every primitive is made of. Those of one `Primitives` share it, so a primitive of your own can be made of it too. */
export interface Context extends KeysOptions {
  readonly runner: ScriptRunner
  /** Keys of one call must then share a scope. */
  readonly isCluster: boolean
  /** Keys like this, in portions, of all masters. */
  readonly scan: (pattern: string, portion: number) => AsyncGenerator<string[]>
  readonly telemetry: Telemetry
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** Null: none was given, and what needs it says so. */
  readonly postgres: Postgres | null
  /** The database's own, also where an application has brought another. Null where there is no database. */
  readonly databaseSecret: KeyObject | null
  /** Leases that are lost when the connections are closed. */
  readonly held: HeldLeases
  /** Fires when the connections are closed: for what goes on by itself. */
  readonly closing: AbortSignal
}

/** What became of a call, in a word of a bounded set: `claimed`, `exists`, `refused`. */
export function tell({ telemetry }: Context, primitive: Purpose, result: string, by = 1): void {
  telemetry.count?.('holdfast_primitive_results_total', { primitive, result }, by)
}

/** To the log, in the one form in which a key may be named there. */
export function note(
  { telemetry }: Context,
  event: string,
  scope: Scope,
  more: Record<string, string | number> = {},
): void {
  telemetry.log?.('info', event, { ...scope.facts, ...more })
}

/** Postgres, for what can't be had without it. */
export function durable(context: Context, what: string): Postgres {
  return connected(context).postgres ?? lacks(what)
}

/** The same, with the secret of the database: for what belongs to that, rather than to an application with a secret of its own. */
export const ofDatabase = (context: Context, what: string): Context => ({
  ...context,
  secret: context.databaseSecret ?? lacks(what),
})

function lacks(what: string): never {
  throw invalid('postgres', `a connection, since ${what} is kept there`, 'none')
}
