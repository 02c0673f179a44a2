import { checkMigrated, HoldfastError, Postgres } from 'holdfast'
import { type ApiKey, ApiKeys } from '../access/index.js'
import type { ReadConfig } from '../config/index.js'
import { StartError } from '../lifecycle/start-error.js'
import { EXIT, type Run } from './command.js'
import { tableOf } from './table.js'

export const createKey: Run = async (given, { print }) => {
  const { config } = given
  const { text, key } = await withKeys(given, (keys) =>
    keys.create({
      tenant: config.tenant as string,
      name: config.keyName as string,
      scopes: config.scopes as ApiKey['scopes'],
      walletPrefix: config.walletPrefix ?? '',
      expiresInMs: config.expiresInMs,
      rateMax: config.rate ?? null,
      concurrentMax: config.concurrent ?? null,
      bodyMaxBytes: config.bodyBytes ?? null,
    }),
  )
  if (config.json) {
    print(JSON.stringify({ key: text, ...key }))
    return EXIT.ok
  }
  print(`${keyTable([key])}\n\n  ${text}\n\nThis is the key. It is shown this once: keep it where secrets are kept.`)
  return EXIT.ok
}

export const listKeys: Run = async (given, { print }) => {
  const { config } = given
  const keys = await withKeys(given, (keys) => keys.list(config.tenant))
  if (config.json) print(JSON.stringify(keys))
  else print(keys.length === 0 ? 'There are no keys. Make one with: holdfast keys create' : keyTable(keys))
  return EXIT.ok
}

export const revokeKey: Run = async (given, { print }) => {
  const { config } = given
  const key = await withKeys(given, (keys) => keys.revoke(config.keyId as string))
  if (config.json) print(JSON.stringify(key))
  else print(`The key ${key.id} (${key.name}) is revoked: no server takes it any more within a second.`)
  return EXIT.ok
}

async function withKeys<T>({ config, nameOf }: ReadConfig, work: (keys: ApiKeys) => Promise<T>): Promise<T> {
  const postgres = new Postgres(config.databaseUrl as string, { schema: config.schema as string, maxConnections: 1 })
  try {
    await checkMigrated(postgres)
    return await work(await ApiKeys.of(postgres))
  } catch (error) {
    if (HoldfastError.is(error, 'invalid_argument')) throw new StartError(error.message)
    if (error instanceof HoldfastError) throw new StartError(`${nameOf('databaseUrl')}: ${error.message}`)
    throw error
  } finally {
    await postgres.close()
  }
}

const keyTable = (keys: readonly ApiKey[]): string =>
  tableOf(
    ['id', 'tenant', 'name', 'scopes', 'wallets', 'made', 'last used', 'state'],
    keys.map((key) => [
      key.id,
      key.tenant,
      key.name,
      key.scopes.join(','),
      key.walletPrefix === '' ? 'all' : `${key.walletPrefix}…`,
      momentOf(key.createdAt),
      key.lastUsedAt === null ? 'never' : momentOf(key.lastUsedAt),
      stateOf(key),
    ]),
  )

/** 2026-11-15 10:15 */
const momentOf = (timeMs: number): string => new Date(timeMs).toISOString().slice(0, 16).replace('T', ' ')

function stateOf({ revokedAt, expiresAt }: ApiKey): string {
  if (revokedAt !== null) return `revoked ${momentOf(revokedAt)}`
  if (expiresAt === null) return 'good'
  return `${expiresAt <= Date.now() ? 'expired' : 'good until'} ${momentOf(expiresAt)}`
}
