import type { FastifyInstance } from 'fastify'

/**
 * A span a request, where the process has an OpenTelemetry SDK. Whether it has is looked up here, once: without one there is no hook, and
 * a request costs what it cost before.
 *
 * The operations of many requests go to Redis and Postgres in one call, so those calls are children of no single span.
 */
export async function traceRequests(app: FastifyInstance): Promise<void> {
  const api = await import('@opentelemetry/api').catch(() => null)
  if (api === null) return
  const provider = api.trace.getTracerProvider()
  const none = new api.ProxyTracerProvider().getDelegate()
  if (provider instanceof api.ProxyTracerProvider && provider.getDelegate() === none) return

  const tracer = provider.getTracer('@holdfast/server')
  app.addHook('onRequest', (request, reply, done) => {
    const { method, routeOptions, headers, id } = request
    const route = routeOptions.url ?? 'none'
    const parent = api.propagation.extract(api.context.active(), headers)
    // Patterns and classes only, as in the logs: a path names wallets.
    const attributes = { 'http.request.method': method, 'http.route': route, 'holdfast.request_id': id }
    const span = tracer.startSpan(`${method} ${route}`, { kind: api.SpanKind.SERVER, attributes }, parent)
    // Answered, or given up by its caller: either way it is closed.
    reply.raw.once('close', () => {
      const answered = reply.raw.writableFinished
      if (answered) span.setAttribute('http.response.status_code', reply.statusCode)
      if (reply.refusal !== null) span.setAttribute('holdfast.code', reply.refusal)
      if (!answered || reply.statusCode >= 500) span.setStatus({ code: api.SpanStatusCode.ERROR })
      span.end()
    })
    api.context.with(api.trace.setSpan(parent, span), done)
  })
}
