import { PostgresError, statementFailure } from './failure.js'
import { checkSchema } from './session.js'

/** A connection of the caller's own, within a transaction of the caller's own: a client of `pg`, not a pool of them. */
export interface CallersClient {
  query(text: string, values?: unknown[]): Promise<{ readonly rows: unknown[] }>
}

export interface Within {
  readonly schema: string
  /** The one that the function writes to. */
  readonly table: string
  readonly name: string
}

/**
 * Calls a function of the schema on a connection that is not ours: its settings are not touched, so the function is named in full and
 * carries its search path with it. Resolves with what it returns, as text: how other types are read there is the caller's choice. What it
 * throws has to reach the caller's rollback.
 *
 * Outside of a transaction it would be committed by itself, and what the caller does would not. Postgres tells nobody which it is, but takes
 * LOCK TABLE only within one (25P01); the lock is the one that the function takes in any case.
 */
export async function callWithin(
  client: CallersClient,
  { schema, table, name }: Within,
  values: readonly unknown[],
): Promise<string> {
  const parameters = values.map((_, at) => `$${at + 1}`).join(', ')
  try {
    await client.query(`LOCK TABLE ${checkSchema(schema)}.${table} IN ROW EXCLUSIVE MODE`)
    const { rows } = await client.query(`SELECT ${schema}.${name}(${parameters})::text AS value`, [...values])
    const [row] = rows as { value: string }[]
    if (row !== undefined) return row.value
  } catch (error) {
    throw statementFailure(error, name, "the caller's connection", 'not_executed')
  }
  throw new PostgresError('refused', `${name} on the caller's connection returned nothing`)
}
