import { startRedis } from '@holdfast/services'
import { Primitives } from '../../../src/primitives/index.js'
import type { Script } from '../../../src/redis/script.js'
import { startProxy } from '../../redis/support/proxy.js'
import { PATIENT } from './patient.js'
import { SECRET } from './topologies.js'

/** Loses the answer to the next call of a script, which has run by then. It must have run before: otherwise it is sent as its source. */
export type Lose = (script: Script) => Promise<void>

/** Primitives whose way to Redis can lose answers. */
export async function whileAnswersGetLost(use: (primitives: Primitives, lose: Lose) => Promise<void>): Promise<void> {
  const server = await startRedis({ source: 'installed' })
  const proxy = await startProxy(server.port)
  const redis = `redis://127.0.0.1:${proxy.port}`
  const primitives = await Primitives.connect({ redis, secret: SECRET, ...PATIENT })
  try {
    await use(primitives, ({ sha1 }) => proxy.cutReplyTo(sha1))
  } finally {
    await primitives.close()
    await proxy.close()
    await server.stop()
  }
}
