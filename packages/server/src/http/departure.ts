import type { FastifyReply } from 'fastify'

/** Fires when the caller goes away before the answer: nobody waits any more. What was asked for may happen all the same. */
export function departureOf({ raw }: FastifyReply): AbortSignal {
  const departure = new AbortController()
  raw.once('close', () => {
    if (!raw.writableFinished) departure.abort()
  })
  return departure.signal
}
