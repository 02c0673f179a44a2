import { Holdfast } from 'holdfast'
import { FindingsWebhook } from '../audit/index.js'
import type { Config, ReadConfig } from '../config/index.js'
import { type Connections, openConnections, type RunningServer, startServer, untilSignal } from '../lifecycle/index.js'
import { createLogger, type Logger } from '../logging/index.js'
import { createMetrics, type Metrics } from '../metrics/index.js'
import { VERSION } from '../version.js'
import { EXIT, type Run } from './command.js'

type Optional = 'auditWebhookUrl' | 'auditWebhookSecret'

/** What `serve` needs, and `dev` finds for itself: `readConfig` has seen to it that it is there. */
export type ServeConfig = { [Name in Exclude<keyof Config, Optional>]-?: NonNullable<Config[Name]> } & Pick<
  Config,
  Optional
>

export interface Started {
  server: RunningServer
  connections: Connections
}

/** Connects, checks, listens. What fails on the way is closed again. */
export async function start(config: ServeConfig, nameOf: ReadConfig['nameOf']): Promise<Started> {
  const logger = createLogger(config.logLevel)
  endOnCrash(logger)
  const metrics = createMetrics(logger)
  const opened = await openConnections({
    ...config,
    names: { redis: nameOf('redisUrl'), postgres: nameOf('databaseUrl') },
    telemetry: metrics.telemetry,
  })
  const connections = await withAudits(config, metrics, opened)
  try {
    const server = await startServer({ ...config, version: VERSION, logger, metrics, connections })
    logger.info({ url: server.url, version: VERSION }, 'ready')
    return { server, connections }
  } catch (error) {
    await connections.close()
    throw error
  }
}

/** The engine of this process, which sweeps and audits in the background from now on; it is closed with the connections. */
async function withAudits(config: ServeConfig, { telemetry }: Metrics, opened: Connections): Promise<Connections> {
  const { auditIntervalMs: every, auditRepair: repair, auditWebhookUrl: url, auditWebhookSecret: secret } = config
  const webhook = url && secret ? new FindingsWebhook({ url, secret, telemetry }) : null
  try {
    const holdfast = await Holdfast.connect({
      redis: opened.redis,
      postgres: opened.postgres,
      migrate: false,
      telemetry,
      audit: every > 0 && { every, repair, onReport: (report) => webhook?.push(report) },
    })
    const close = async () => {
      await Promise.all([holdfast.close(), webhook?.close()])
      await opened.close()
    }
    return { ...opened, close }
  } catch (error) {
    await opened.close()
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
