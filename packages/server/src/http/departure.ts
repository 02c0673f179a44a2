import { setMaxListeners } from 'node:events'
import type { Socket } from 'node:net'
import type { FastifyReply } from 'fastify'

/** Of a connection, not of a request: one signal does for all that come over it, and they are many. */
const departures = new WeakMap<Socket, AbortSignal>()

/** Fires when the caller goes away before the answer: nobody waits any more. What was asked for may happen all the same. */
export function departureOf({ request }: FastifyReply): AbortSignal {
  const { socket } = request.raw
  const known = departures.get(socket)
  if (known) return known
  const departure = new AbortController()
  if (socket.destroyed) departure.abort()
  else socket.once('close', () => departure.abort())
  // Many may wait at once, of a batch or of requests that were sent without waiting for answers: no leak.
  setMaxListeners(0, departure.signal)
  departures.set(socket, departure.signal)
  return departure.signal
}
