import type { PrimitivesOptions } from '../../../src/primitives/index.js'

/** On a machine that stands still for a moment no server is taken to be away, and nobody gives up waiting for a lock. */
export const PATIENT = {
  redisOptions: { commandTimeoutMs: 20_000, connectTimeoutMs: 20_000 },
  postgresOptions: { connectTimeoutMs: 20_000, statementTimeoutMs: 20_000, lockTimeoutMs: 20_000 },
} as const satisfies Partial<PrimitivesOptions>
