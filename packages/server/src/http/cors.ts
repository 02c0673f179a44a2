import type { FastifyInstance } from 'fastify'

const ALLOWED = {
  'access-control-allow-methods': 'GET, PUT, POST',
  'access-control-allow-headers': 'authorization, content-type, idempotency-key, last-event-id, prefer, x-request-id',
  // Browsers ask again after two hours at the latest, whatever is said here.
  'access-control-max-age': '7200',
}

/**
 * Which pages may call from a browser: those of the origins in the list, or of any with `*`. Cookies are never part of it: who calls is
 * told by the token alone, so even `*` gives no page the rights of the person before the screen.
 */
export function allowOrigins(app: FastifyInstance, origins: readonly string[]): void {
  if (origins.length === 0) return
  const any = origins.includes('*')
  app.addHook('onRequest', async (request, reply) => {
    const { origin } = request.headers
    if (!any) reply.header('vary', 'origin')
    if (origin === undefined || !(any || origins.includes(origin))) return
    reply.header('access-control-allow-origin', any ? '*' : origin)
    reply.header('access-control-expose-headers', 'retry-after, x-request-id')
  })
  app.options('/v1/*', { schema: { hide: true } }, async (request, reply) => {
    // Without the origin's header a browser goes no further; what is allowed in general is no secret.
    if (request.headers.origin !== undefined) reply.headers(ALLOWED)
    return reply.code(204).send()
  })
}
