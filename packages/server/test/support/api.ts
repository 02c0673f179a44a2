/** The server as it is behind `serve`, in this process and on a port of its own: real Redis, real Postgres, real HTTP. */
import type { FastifyInstance } from 'fastify'
import { Postgres, RedisConnection } from 'holdfast'
import { afterAll, vi } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { SCOPES, type Scope } from '../../src/access/index.js'
import { type AppOptions, createApp } from '../../src/app.js'
import { Readiness } from '../../src/health/index.js'
import { type Backend, type BackendSettings, openBackend } from '../../src/lifecycle/index.js'
import { createLogger } from '../../src/logging/index.js'
import { createMetrics } from '../../src/metrics/index.js'
import type { SaleSettings } from '../../src/sales/index.js'
import { SALE_DEFAULTS } from './settings.js'

/** On a machine that stands still for a moment Redis would be taken to be away, and a webhook not to have answered. */
const PATIENT = {
  redis: { commandTimeoutMs: 20_000, connectTimeoutMs: 20_000 },
  postgres: { connectTimeoutMs: 20_000, lockTimeoutMs: 20_000, statementTimeoutMs: 20_000 },
  deliveries: { timeoutMs: 20_000 },
}
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

export interface Answer {
  status: number
  headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: what a server sent, which is what the tests are about
  body: any
}

export interface Call {
  body?: unknown
  key?: string
  headers?: Record<string, string>
  signal?: AbortSignal
}

type KeyOptions = Partial<Parameters<Backend['keys']['create']>[0]>

export interface ApiSettings extends Partial<Pick<AppOptions, 'corsOrigins' | 'bodyMaxBytes'>> {
  redisUrl?: string
  databaseUrl?: string
  keyRate?: number
  keyConcurrent?: number
  eventsExpiringMs?: number
  auditRepair?: boolean
  keySampleMs?: number
  sales?: Partial<SaleSettings>
  streams?: BackendSettings['streams']
  deliveries?: BackendSettings['deliveries']
  webhookHosts?: readonly string[]
}

const started: Api[] = []
afterAll(async () => {
  for (const api of started.splice(0)) await api.close()
})

export class Api {
  url = ''
  /** Every line that was logged. */
  readonly lines: string[] = []

  private constructor(
    readonly app: FastifyInstance,
    readonly backend: Backend,
    readonly databaseUrl: string,
    readonly redisUrl: string,
    readonly close: () => Promise<void>,
  ) {}

  static async start(settings: ApiSettings = {}): Promise<Api> {
    const {
      keyRate = 1_000_000,
      keyConcurrent = 1_000_000,
      eventsExpiringMs = 0,
      auditRepair = false,
      streams,
      sales,
      ...others
    } = settings
    const { webhookHosts = ['127.0.0.1'], deliveries } = settings
    const databaseUrl = settings.databaseUrl ?? (await freshDatabase())
    const redisUrl = settings.redisUrl ?? (await freshRedis())
    const lines: string[] = []
    const logger = createLogger('info', { write: (line: string) => void lines.push(line) })
    const metrics = createMetrics(logger)
    const { telemetry } = metrics
    const redis = new RedisConnection(redisUrl, { ...PATIENT.redis, telemetry })
    const postgres = new Postgres(databaseUrl, { ...PATIENT.postgres, telemetry })
    const connections = {
      redis,
      postgres,
      close: async () => void (await Promise.all([redis.close(), postgres.close()])),
    }
    const backend = await openBackend(connections, {
      keyRate,
      keyConcurrent,
      auditIntervalMs: 0,
      auditRepair,
      keySampleMs: settings.keySampleMs ?? 0,
      eventsKeepMs: 604_800_000,
      eventsExpiringMs,
      ...SALE_DEFAULTS,
      ...sales,
      ...(streams && { streams }),
      webhookHosts,
      deliveries: { pollMs: 50, backoffMs: 40, ...PATIENT.deliveries, ...deliveries },
      telemetry,
    })
    const readiness = new Readiness({}, { timeoutMs: 1_000, telemetry })
    const app = await createApp({ logger, metrics, readiness, version: '1.2.3', ...backend, ...others })
    const close = async () => {
      readiness.stop()
      await app.close()
      await backend.close()
      await connections.close()
    }
    const api = new Api(app, backend, databaseUrl, redisUrl, close)
    started.push(api)
    api.url = await app.listen({ host: '127.0.0.1', port: 0 })
    Object.defineProperty(api, 'lines', { value: lines })
    return api
  }

  /** The text of a new key. */
  async key(scopes: readonly Scope[] = SCOPES, options: KeyOptions = {}): Promise<string> {
    return (await this.backend.keys.create({ tenant: 'default', name: 'test', scopes, ...options })).text
  }

  /** Calls as one who has this key or token. */
  as(credential: string | null) {
    return async (method: string, path: string, { body, key, headers, signal }: Call = {}): Promise<Answer> => {
      const response = await fetch(`${this.url}${path}`, {
        method,
        headers: {
          ...(credential !== null && { authorization: `Bearer ${credential}` }),
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...(key !== undefined && { 'idempotency-key': key }),
          ...headers,
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        ...(signal && { signal }),
      })
      const text = await response.text()
      const json = response.headers.get('content-type')?.includes('json')
      return { status: response.status, headers: response.headers, body: json ? JSON.parse(text) : text }
    }
  }
}

export type Caller = ReturnType<Api['as']>

let wallets = 0

/** A wallet of its own with so much in it; gives back its path. */
export async function openWallet(call: Caller, amount = 1_000): Promise<string> {
  wallets += 1
  const path = `/v1/wallets/w-${process.pid}-${wallets}`
  const opened = await call('PUT', path, { body: { currency: 'usd' } })
  if (opened.status !== 200) throw new Error(`The wallet was not opened: ${JSON.stringify(opened.body)}`)
  if (amount > 0) await call('POST', `${path}/credits`, { body: { amount }, key: 'topup' })
  return path
}
