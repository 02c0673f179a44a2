/**
 * What tests import: real servers, shared by the whole run but with data of one's own.
 *
 *   const databaseUrl = await freshDatabase()    // an own database, migrated
 *   const redisUrl = await freshRedis()          // an own, empty database number
 *   new Redis(await sharedSentinel())            // use keys of your own: these two are not emptied
 *   new Cluster(await sharedCluster())
 *
 * They are shared: a test that stops, pauses, flushes or reconfigures a server starts one of its own with
 * `startRedis()`, `startPostgres()`, … of @holdfast/services. Fault tests do so too.
 */
import { inject } from 'vitest'

async function ask<T>(path: string): Promise<T> {
  const response = await fetch(`${inject('serversUrl')}${path}`)
  const body = await response.text()
  if (!response.ok) throw new Error(`The test servers answered ${response.status} to ${path}: ${body}`)
  return JSON.parse(body) as T
}

/** URL of a new database with all migrations applied. */
export const freshDatabase = () => ask<string>('/fresh-database')

/** URL of a new database with nothing in it: for tests of the migrations themselves. */
export const emptyDatabase = () => ask<string>('/empty-database')

/** URL of an empty Redis database: a number of its own on the shared single server. */
export const freshRedis = () => ask<string>('/fresh-redis')

interface Address {
  host: string
  port: number
}

/** The Sentinel group, as ioredis takes it. Started when first asked for. */
export const sharedSentinel = () => ask<{ name: string; sentinels: Address[] }>('/sentinel')

/** Addresses of the Cluster's nodes, as ioredis takes them. Started when first asked for. */
export const sharedCluster = () => ask<Address[]>('/cluster')

/** Resolves once `dist/` of every package is in step with the sources: for tests that run the product as users do. */
export const built = () => ask<true>('/built')
