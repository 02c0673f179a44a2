import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { type FastifyBaseLogger, type FastifyInstance, type FastifyReply, fastify, LogController } from 'fastify'
import { type Holdfast, HoldfastError } from 'holdfast'
import type { FeatureFlags } from 'holdfast/primitives'
import type { Logger } from 'pino'
import type { Gate } from './access/index.js'
import type { RequestedAudits } from './audit/index.js'
import type { EventHub } from './events/index.js'
import type { Readiness } from './health/index.js'
import { allowOrigins } from './http/cors.js'
import { headersFor, requestIdOf } from './http/headers.js'
import { observeRequests } from './http/observe.js'
import { handleError, handleNotFound, PROBLEM_JSON, problemOf, sendProblem, toHoldfastError } from './http/problem.js'
import { RequestLog } from './http/request-log.js'
import { traceRequests } from './http/tracing.js'
import { closeUnusedConnections } from './http/unused-connections.js'
import { validatorCompiler } from './http/validation.js'
import type { Metrics } from './metrics/index.js'
import { apiRoutes, describeApi, docsRoutes, errorRoutes, healthRoutes, metricsRoutes } from './routes/index.js'
import type { ScheduleDriver } from './sales/index.js'
import { ProblemSchema, SHARED } from './schemas/index.js'
import type { Webhooks } from './webhooks/index.js'

export interface AppOptions {
  logger: Logger
  metrics: Metrics
  readiness: Readiness
  version: string
  holdfast: Holdfast
  gate: Gate
  events: EventHub
  webhooks: Webhooks
  audits: RequestedAudits
  schedules: ScheduleDriver
  flagsOf: (tenant: string) => FeatureFlags
  /** Of pages that may call from a browser. Default: none. */
  corsOrigins?: readonly string[]
  /** Default 256 kB: a batch of many operations, or 4 kB of metadata many times over. */
  bodyMaxBytes?: number
}

const BODY_MAX_BYTES = 256 * 1024
/** A request comes whole within this time: who sends a byte a minute must not hold a connection for ever. */
const REQUEST_TIMEOUT_MS = 30_000
/** An id of 255 characters, each of them four bytes and each byte percent-encoded. */
const PATH_PARAMETER_MAX = 255 * 4 * 3

/** The HTTP application, ready to listen or to be injected into. It owns no connection: what it needs is handed in. */
export async function createApp(options: AppOptions): Promise<FastifyInstance> {
  const {
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
    corsOrigins = [],
  } = options
  const app: FastifyInstance = fastify({
    loggerInstance: logger as FastifyBaseLogger,
    // Fastify's own lines would carry URLs, and with them wallets and keys.
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'requestId' }),
    childLoggerFactory: (parent, facts) => new RequestLog(parent, facts) as unknown as FastifyBaseLogger,
    genReqId: requestIdOf,
    bodyLimit: options.bodyMaxBytes ?? BODY_MAX_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    // Metadata is anything that is JSON, and comes back as it is. Nothing here copies members by assigning to them: a body is checked
    // against its schema, taken apart and spread, none of which sets a prototype.
    onProtoPoisoning: 'ignore',
    onConstructorPoisoning: 'ignore',
    routerOptions: { maxParamLength: PATH_PARAMETER_MAX },
    // While stopping: idle connections are closed, and who still asks on a live one is answered.
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    // A path that can't be decoded reaches no route and no hook.
    frameworkErrors: (error, request, reply) => {
      reply.headers(headersFor(request))
      sendProblem(reply as FastifyReply, toHoldfastError(error))
    },
    clientErrorHandler: answerBrokenRequest,
  })
  app.setValidatorCompiler(validatorCompiler)
  app.setErrorHandler(handleError)
  app.setNotFoundHandler(handleNotFound)
  // With `done` where nothing has to be waited for: an async hook costs a promise and a turn of the microtasks each.
  app.addHook('onRequest', (request, reply, done) => {
    reply.headers(headersFor(request))
    done()
  })
  observeRequests(app, metrics.telemetry)
  await traceRequests(app)
  closeUnusedConnections(app)
  // Streams do not end by themselves, audits not soon, and a stop waits for all that is being answered.
  app.addHook('preClose', async () => {
    events.endStreams()
    audits.stop()
  })
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (readiness.stopping) reply.header('connection', 'close')
    done(null, payload)
  })

  for (const schema of [ProblemSchema, ...SHARED]) app.addSchema(schema)
  await describeApi(app, version)
  allowOrigins(app, corsOrigins)
  await app.register(healthRoutes, { readiness, version })
  await app.register(metricsRoutes, { registry: metrics.registry })
  await app.register(docsRoutes)
  await app.register(errorRoutes)
  await app.register(apiRoutes, { prefix: '/v1', holdfast, gate, events, webhooks, audits, schedules, flagsOf })
  return app
}

/** What is not even HTTP never becomes a request; its sender gets an answer of the same kind all the same. */
function answerBrokenRequest(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const problem = brokenRequest(error.code)
  const body = JSON.stringify(problemOf(problem, 'none'))
  const head = [
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}`,
    `content-type: ${PROBLEM_JSON}`,
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}

function brokenRequest(code: string | undefined): HoldfastError {
  if (code === 'HPE_HEADER_OVERFLOW')
    return new HoldfastError('too_large', 'The headers are larger than the server takes')
  const expected = code === 'ERR_HTTP_REQUEST_TIMEOUT' ? `a whole one within ${REQUEST_TIMEOUT_MS} ms` : 'HTTP/1.1'
  return new HoldfastError('invalid_argument', `request: expected ${expected}, got something else`)
}
