import type { Config, ReadConfig } from '../config/index.js'
import {
  type Backend,
  type Connections,
  openBackend,
  openConnections,
  type RunningServer,
  startServer,
  untilSignal,
} from '../lifecycle/index.js'
import { createLogger, type Logger } from '../logging/index.js'
import { createMetrics } from '../metrics/index.js'
import { VERSION } from '../version.js'
import { EXIT, type Run } from './command.js'

type Optional = 'auditWebhookUrl' | 'auditWebhookSecret' | 'corsOrigins' | 'webhookHosts' | 'saleBloomItems'

/** What `serve` needs, and `dev` finds for itself: `readConfig` has seen to it that it is there. */
export type ServeConfig = { [Name in Exclude<keyof Config, Optional>]-?: NonNullable<Config[Name]> } & Pick<
  Config,
  Optional
>

export interface Started {
  server: RunningServer
  connections: Connections
  backend: Backend
}

/** Connects, checks, listens. What fails on the way is closed again. */
export async function start(config: ServeConfig, nameOf: ReadConfig['nameOf']): Promise<Started> {
  const logger = createLogger(config.logLevel)
  endOnCrash(logger)
  const metrics = createMetrics(logger)
  const connections = await openConnections({
    ...config,
    names: { redis: nameOf('redisUrl'), postgres: nameOf('databaseUrl') },
    telemetry: metrics.telemetry,
  })
  let backend: Backend | undefined
  try {
    backend = await openBackend(connections, { ...config, telemetry: metrics.telemetry })
    const server = await startServer({ ...config, version: VERSION, logger, metrics, connections, backend })
    logger.info({ url: server.url, version: VERSION }, 'ready')
    return { server, connections, backend }
  } catch (error) {
    await backend?.close()
    await connections.close()
    throw error
  }
}

/** A mistake of ours leaves unknown state behind: one redacted line, and out. What was in flight is safe to repeat by key. */
function endOnCrash(logger: Logger): void {
  process.on('uncaughtException', (error) => {
    logger.fatal({ err: error }, 'crashed')
    process.exit(EXIT.failed)
  })
}

export const stopCode = async (server: RunningServer): Promise<number> =>
  (await server.stop()) === 'finished' ? EXIT.ok : EXIT.failed

export const serve: Run = async ({ config, nameOf }, { print }) => {
  const startedAt = performance.now()
  const { server, connections } = await start(config as ServeConfig, nameOf)
  const readyMs = Math.round(performance.now() - startedAt)
  const { url } = server
  // Before it says that it is ready: whoever reads that may send a signal at once.
  const stopAsked = untilSignal()
  if (config.json) print(JSON.stringify({ event: 'ready', url, version: VERSION, readyMs }))
  else {
    print(
      `Holdfast ${VERSION} on ${url}, Redis at ${connections.redis.address}, Postgres at ${connections.postgres.address}`,
    )
    print(`ready in ${(readyMs / 1000).toFixed(1)} s`)
  }
  await stopAsked
  return stopCode(server)
}
