import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { ErrorCode } from 'holdfast'
import type { ServerTelemetry } from '../metrics/index.js'

declare module 'fastify' {
  interface FastifyReply {
    /** By what code it was refused; null: it was not. */
    refusal: ErrorCode | null
  }
}

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** The pattern, such as `/v1/wallets/:id`: the path itself names wallets. */
const routeOf = (request: FastifyRequest) => request.routeOptions.url ?? 'none'

/** One measurement and one line of log a request, both free of what callers sent. */
export function observeRequests(app: FastifyInstance, telemetry: ServerTelemetry): void {
  app.decorateReply('refusal', null)
  let inFlight = 0
  const takeBack = telemetry.gauge('http_requests_in_flight', () => inFlight)
  app.addHook('onClose', async () => takeBack())

  const arrived = new WeakSet<FastifyRequest>()
  // A request ends once: answered, or given up by its caller. Fastify's own hook for the latter is silent once the body was read.
  const ended = (request: FastifyRequest): boolean => {
    if (!arrived.delete(request)) return false
    inFlight -= 1
    return true
  }
  app.addHook('onRequest', (request, reply, done) => {
    arrived.add(request)
    inFlight += 1
    reply.raw.on('close', () => {
      if (ended(request)) request.log.info({ method: request.method, route: routeOf(request) }, 'request_aborted')
    })
    done()
  })
  app.addHook('onResponse', (request, reply, done) => {
    ended(request)
    const { method } = request
    const route = routeOf(request)
    const durationMs = reply.elapsedTime
    telemetry.observe('http_request_duration_seconds', durationMs / 1000, {
      method: METHODS.has(method) ? method : 'other',
      route,
      status: `${Math.floor(reply.statusCode / 100)}xx`,
    })
    const { statusCode: status, refusal } = reply
    const line = {
      requestId: request.id,
      method,
      route,
      status,
      durationMs: Math.round(durationMs),
      ...(refusal !== null && { code: refusal }),
    }
    // Probes come every few seconds for ever: they would be most of the log.
    const probe = route.startsWith('/health') || route === '/metrics'
    app.log[probe ? 'debug' : 'info'](line, 'request')
    done()
  })
}
