/** Which Redis to run: an installed server where there is one, else Valkey in WebAssembly, which comes with this package. */
import { fileURLToPath } from 'node:url'
import { ServicesError } from '../error.js'
import { onPath } from '../executables.js'

/** `any`: installed first, then wasm. */
export type RedisSource = 'any' | 'installed' | 'wasm'

export interface RedisBinary {
  readonly source: 'installed' | 'wasm'
  readonly file: string
  readonly args: readonly string[]
}

export const INSTALL_REDIS =
  'Install redis-server or valkey-server, version 7 or later (Debian: apt-get install redis-server)'

export function findRedis(source: RedisSource): RedisBinary {
  const file = source === 'wasm' ? undefined : (onPath('redis-server')[0] ?? onPath('valkey-server')[0])
  if (file) return { source: 'installed', file, args: [] }
  if (source === 'installed') throw new ServicesError(`No Redis server was found on PATH. ${INSTALL_REDIS}.`)
  // Plain JavaScript outside `src`: it is run as it stands, from the sources as from the build.
  const program = fileURLToPath(new URL('../../bin/valkey-wasm.mjs', import.meta.url))
  return { source: 'wasm', file: process.execPath, args: [program] }
}

export function redisSource(): RedisSource {
  const value = process.env.HOLDFAST_REDIS
  if (value === undefined || value === '') return 'any'
  if (value === 'any' || value === 'installed' || value === 'wasm') return value
  throw new ServicesError(`HOLDFAST_REDIS: expected any, installed or wasm, got "${value}"`)
}
