import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { FastifyRequest } from 'fastify'

const REQUEST_ID = /^[\w.-]{1,64}$/

/** A caller's id is kept where it is harmless, so that one id runs through a whole system. */
export function requestIdOf(request: IncomingMessage): string {
  const given = request.headers['x-request-id']
  return typeof given === 'string' && REQUEST_ID.test(given) ? given : randomUUID()
}

/** For an API that no page embeds. The docs page brings a policy of its own. */
const SECURITY_HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}

export const headersFor = ({ id }: Pick<FastifyRequest, 'id'>) => ({ ...SECURITY_HEADERS, 'x-request-id': id })
