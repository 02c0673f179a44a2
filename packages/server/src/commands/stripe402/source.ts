import { HoldfastError } from 'holdfast'
import { type LedgerStore, openStore, type StoreSource } from 'holdfast/stripe402'
import { ConfigError, type ReadConfig } from '../../config/index.js'
import { StartError } from '../../lifecycle/start-error.js'

/** Opens the store that the command is about, and closes it after the work. */
export async function withStore<T>(given: ReadConfig, work: (store: LedgerStore) => Promise<T>): Promise<T> {
  const { source, name } = sourceOf(given)
  try {
    const opened = await openStore(source).catch((error: unknown) => {
      throw HoldfastError.is(error, 'unavailable') ? new StartError(`${name}: ${error.message}`) : error
    })
    try {
      return await work(opened.store)
    } finally {
      await opened.close()
    }
  } catch (error) {
    if (HoldfastError.is(error, 'incompatible')) throw new StartError(`${name}: there are no tables of stripe402`)
    if (HoldfastError.is(error, 'aborted')) throw new StartError('Stopped before it was done')
    if (HoldfastError.is(error)) throw new StartError(error.message)
    throw error
  }
}

function sourceOf({ config, nameOf }: ReadConfig): { source: StoreSource; name: string } {
  const { fromRedis: redis, fromPostgres: postgres } = config
  if (redis !== undefined && postgres === undefined) {
    const { keyPrefix, taggedKeys: tagged } = config
    return { source: { redis, keyPrefix, tagged }, name: nameOf('fromRedis') }
  }
  if (postgres !== undefined && redis === undefined) return { source: { postgres }, name: nameOf('fromPostgres') }
  if (redis === undefined) throw new ConfigError('Expected --from-redis or --from-postgres, got neither')
  const both = `${nameOf('fromRedis')} and ${nameOf('fromPostgres')}`
  throw new ConfigError(`Expected --from-redis or --from-postgres, got both: ${both}`)
}
