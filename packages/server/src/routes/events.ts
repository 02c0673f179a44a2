import type { FastifyReply, FastifyRequest } from 'fastify'
import { EVENT_NAMES, type EventName, HoldfastError } from 'holdfast'
import { Type } from 'typebox'
import { chosenEvents } from '../events/index.js'
import { departureOf } from '../http/departure.js'
import { Balance } from '../schemas/index.js'
import type { Routes } from './index.js'
import { type ApiOptions, orWalletNotFound, WalletPath, walletOf } from './v1.js'

const EVENT_STREAM = 'text/event-stream'

const Chosen = Type.Object({
  events: Type.Optional(
    Type.String({
      maxLength: 255,
      description: `Which, separated by commas: ${EVENT_NAMES.join(', ')}. Without it all`,
    }),
  ),
  balanceLow: Type.Optional(
    Type.Integer({ ...Balance, description: '`balance.low`: when `available` falls below this. Without it never' }),
  ),
})
const Resumed = Type.Object({
  'last-event-id': Type.Optional(
    Type.String({ description: 'The id of the last event that was seen: goes on behind it. Without it: from now on' }),
  ),
})
const Streamed = {
  200: {
    description: 'Server-sent events, as they happen. `data` is JSON with `id`, `event`, `at`, `wallet` and facts',
    content: { [EVENT_STREAM]: { schema: Type.String() } },
  },
}

export const eventRoutes: Routes<ApiOptions> = async (app, options) => {
  const shared = { tags: ['events'], querystring: Chosen, headers: Resumed, response: Streamed }

  const all = {
    operationId: 'streamEvents',
    summary: 'What happens to all wallets that the caller may see, as server-sent events',
    description: 'In order for each wallet, at least once. With a wallet token: of its wallet.',
    ...shared,
  }
  const config = { scope: 'read', refusals: ['events_gone'] } as const
  app.get('/events', { schema: all, config, exposeHeadRoute: false }, async (request, reply) =>
    stream(options, request, reply, request.caller.wallet),
  )

  const one = {
    operationId: 'streamWalletEvents',
    summary: 'What happens to one wallet, as server-sent events',
    params: WalletPath,
    ...shared,
  }
  const ofOne = { scope: 'read', refusals: ['events_gone', 'wallet_not_found'] } as const
  app.get('/wallets/:id/events', { schema: one, config: ofOne, exposeHeadRoute: false }, async (request, reply) => {
    const wallet = walletOf(options, request.caller, request.params.id)
    await orWalletNotFound(wallet, null, true)
    return stream(options, request, reply, request.params.id)
  })
}

type EventRequest = FastifyRequest<{ Querystring: { events?: string; balanceLow?: number } }>

async function stream({ events }: ApiOptions, request: EventRequest, reply: FastifyReply, wallet: string | null) {
  const { caller, query, headers } = request
  const { tenant, walletPrefix } = caller
  const chosen = chosenEvents(query.events === undefined ? undefined : namesIn(query.events))
  const readable = await events.open({
    subscription: { tenant, wallet, walletPrefix, events: chosen, balanceLow: query.balanceLow ?? null },
    lastEventId: headers['last-event-id'] as string | undefined,
    authorization: headers.authorization as string,
    left: departureOf(reply),
  })
  // Proxies that gather an answer before they pass it on would hold back all of this one.
  return reply.type(EVENT_STREAM).header('x-accel-buffering', 'no').send(readable)
}

function namesIn(text: string): EventName[] {
  return text.split(',').map((given) => {
    const name = EVENT_NAMES.find((one) => one === given.trim())
    if (name) return name
    const message = `query.events: expected some of ${EVENT_NAMES.join(', ')}, got ${JSON.stringify(given.slice(0, 60))}`
    throw new HoldfastError('invalid_argument', message, { argument: 'query.events' })
  })
}
