import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { HoldfastError, type Postgres, readStop } from 'holdfast'
import type { Logger } from 'pino'
import { createApp } from '../app.js'
import { Readiness } from '../health/index.js'
import type { Metrics } from '../metrics/index.js'
import type { Backend } from './backend.js'
import type { Connections } from './connections.js'
import { StartError } from './start-error.js'

export interface ServerSettings {
  host: string
  port: number
  healthTimeoutMs: number
  drainMs: number
  shutdownTimeoutMs: number
  version: string
  logger: Logger
  metrics: Metrics
  connections: Connections
  backend: Backend
  corsOrigins?: readonly string[] | undefined
  bodyMaxBytes: number
}

export interface RunningServer {
  /** Where it can be reached, such as `http://127.0.0.1:4020`. */
  url: string
  /** Finishes what is in flight, then closes the connections. `cut`: time was up before all of it was answered. */
  stop(): Promise<'finished' | 'cut'>
}

export async function startServer(settings: ServerSettings): Promise<RunningServer> {
  const { connections, backend, logger, metrics, version, corsOrigins = [], bodyMaxBytes } = settings
  const { holdfast, gate, events, webhooks, audits, schedules, flagsOf } = backend
  const readiness = new Readiness(
    { redis: () => connections.redis.ping(), postgres: () => checkPostgres(connections.postgres) },
    { timeoutMs: settings.healthTimeoutMs, dispensable: ['redis'], telemetry: metrics.telemetry },
  )
  const app = await createApp({
    logger,
    metrics,
    readiness,
    version,
    holdfast,
    gate,
    events,
    webhooks,
    audits,
    schedules,
    flagsOf,
    corsOrigins,
    bodyMaxBytes,
  })
  await listen(app, settings)
  const stop = async () => {
    readiness.stop()
    // Whoever asks meanwhile is answered, and told to come no more on this connection. Closed at once, connections that are only kept
    // open would be cut under a request that is just being sent.
    await sleep(settings.drainMs)
    const outcome = await closeWithin(app, settings.shutdownTimeoutMs)
    // In this order: what was answered has been committed, or is, before there is nothing to commit it to.
    await backend.close()
    await connections.close()
    return outcome
  }
  return { url: urlOf(app.server.address() as AddressInfo), stop }
}

/** It may be there and lack what it acknowledged: then nothing is decided, and an operator has to act. */
async function checkPostgres(postgres: Postgres): Promise<void> {
  await postgres.ping()
  const because = await readStop(postgres)
  if (because !== null) throw new HoldfastError('reconcile_required', because)
}

async function listen(app: FastifyInstance, { host, port }: ServerSettings): Promise<void> {
  try {
    await app.listen({ host, port, listenTextResolver: () => 'listening' })
  } catch (error) {
    await app.close()
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EADDRINUSE') {
      throw new StartError(`Port ${port} of ${host} is taken: choose another with --port or HOLDFAST_PORT`)
    }
    if (code === 'EACCES') {
      throw new StartError(`Port ${port} of ${host} is not for this user: choose another with --port or HOLDFAST_PORT`)
    }
    if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
      throw new StartError(`${host} is no address of this machine: choose another with --host or HOLDFAST_HOST`)
    }
    throw error
  }
}

/** Waits for what is in flight, and cuts it when the time is up: a stop must end. */
async function closeWithin(app: FastifyInstance, timeoutMs: number): Promise<'finished' | 'cut'> {
  let outcome: 'finished' | 'cut' = 'finished'
  const timer = setTimeout(() => {
    outcome = 'cut'
    app.server.closeAllConnections()
  }, timeoutMs)
  await app.close()
  clearTimeout(timer)
  return outcome
}

function urlOf({ address, family, port }: AddressInfo): string {
  // What listens everywhere is reached at home.
  const host = address === '0.0.0.0' || address === '::' ? '127.0.0.1' : family === 'IPv6' ? `[${address}]` : address
  return `http://${host}:${port}`
}
