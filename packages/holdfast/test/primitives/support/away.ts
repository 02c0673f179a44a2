import { startRedis } from '@holdfast/services'
import { Primitives } from '../../../src/primitives/index.js'
import { SECRET } from './topologies.js'

/** Primitives whose Redis was there and is away now. */
export async function whileAway(use: (primitives: Primitives) => Promise<void>): Promise<void> {
  const server = await startRedis({ source: 'installed' })
  const primitives = await Primitives.connect({
    redis: server.url,
    secret: SECRET,
    redisOptions: { commandTimeoutMs: 300, connectTimeoutMs: 200 },
  })
  try {
    await server.stop()
    await use(primitives)
  } finally {
    await primitives.close()
  }
}
