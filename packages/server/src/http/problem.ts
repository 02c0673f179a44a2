import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { ERRORS, type ErrorCode, HoldfastError } from 'holdfast'
import { validationError } from './validation.js'

export const PROBLEM_JSON = 'application/problem+json'

/** RFC 9457, with `code` to decide by and the facts beside it. */
export interface Problem {
  type: string
  title: string
  status: number
  detail: string
  code: ErrorCode
  retryable: boolean
  requestId: string
  /** A page about the code, on this server: it is there without the internet. */
  docs: string
  [fact: string]: unknown
}

/**
 * What a caller is told. A mistake of theirs comes with its message and facts; of ours only with the code's meaning and the facts that are
 * numbers (a limit, how long to wait), since what else comes from deep down can name hosts and tables.
 */
export function problemOf(error: HoldfastError, requestId: string, extra: Record<string, unknown> = {}): Problem {
  const { code, status, retryable } = error
  const ours = status >= 500
  return {
    ...(ours ? numbers(error.facts) : error.facts),
    ...extra,
    type: `urn:holdfast:error:${code}`,
    title: code.replaceAll('_', ' '),
    status,
    detail: ours ? ERRORS[code].meaning : error.message,
    code,
    retryable,
    requestId,
    docs: `/errors/${code}`,
  }
}

function numbers(facts: HoldfastError['facts']): Record<string, number> {
  return Object.fromEntries(
    Object.entries(facts).filter((fact): fact is [string, number] => typeof fact[1] === 'number'),
  )
}

export function sendProblem(
  reply: FastifyReply,
  error: HoldfastError,
  extra: Record<string, unknown> = {},
): FastifyReply {
  const problem = problemOf(error, reply.request.id, extra)
  reply.refusal = error.code
  if (error.code === 'unauthenticated') reply.header('www-authenticate', 'Bearer')
  if (typeof error.facts.retryAfter === 'number') reply.header('retry-after', error.facts.retryAfter)
  // As a string: the route's own schema describes its success, and must not shape this.
  return reply.code(problem.status).type(PROBLEM_JSON).serializer(String).send(JSON.stringify(problem))
}

/** Everything that is thrown on the way of a request becomes one of our codes. */
export function toHoldfastError(error: unknown): HoldfastError {
  if (error instanceof HoldfastError) return error
  const { validation, validationContext, statusCode, code, message } = error as FastifyError
  if (validation) return validationError(validation, validationContext)
  if (statusCode === 413) return new HoldfastError('too_large', 'The body is larger than the server takes')
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') {
    const argument = 'header.content-type'
    const message = `${argument}: expected application/json, got something else. Add the header Content-Type: application/json`
    return new HoldfastError('invalid_argument', message, { argument })
  }
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
    return new HoldfastError('invalid_argument', message)
  }
  return new HoldfastError('internal_error', undefined, {}, { cause: error })
}

export function handleError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const problem = toHoldfastError(error)
  // Callers' mistakes are theirs to read, in the answer; ours are for the log, with everything there is.
  // Who went away is told nothing, and nothing is wrong with us.
  if (problem.status >= 500 && problem.code !== 'aborted') {
    const original = problem.cause instanceof Error && problem.code === 'internal_error' ? problem.cause : problem
    request.log.error({ code: problem.code, err: original }, 'request_failed')
  }
  return sendProblem(reply, problem)
}

export function handleNotFound(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const message = `There is nothing at ${request.method} of this path: /docs shows what there is`
  return sendProblem(reply, new HoldfastError('route_not_found', message))
}
