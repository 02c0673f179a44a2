/**
 * What tests import: URLs of real servers, shared by the whole run but with data of one's own.
 *
 *   const databaseUrl = await freshDatabase()   // an own, migrated database
 *   const redisUrl = await freshRedis()         // an own, empty database number
 *
 * They are shared: a test that stops, pauses, flushes or reconfigures a server starts one of its own with
 * `startRedis()` or `startPostgres()` of @holdfast/services.
 */
import { inject } from 'vitest'

async function ask(path: string): Promise<string> {
  const response = await fetch(`${inject('serversUrl')}${path}`)
  const body = await response.text()
  if (!response.ok) throw new Error(`The test servers answered ${response.status} to ${path}: ${body}`)
  return body
}

/** URL of a new database with all migrations applied. */
export const freshDatabase = () => ask('/fresh-database')

/** URL of an empty Redis database (its own number on the shared single server). */
export const freshRedis = () => ask('/fresh-redis')
