import type { FastifyReply, FastifyRequest } from 'fastify'
import { EVENT_NAMES, type EventName, HoldfastError, SALE_EVENT_NAMES } from 'holdfast'
import { Type } from 'typebox'
import { chosenEvents, type Subscription } from '../events/index.js'
import { departureOf } from '../http/departure.js'
import { Balance } from '../schemas/index.js'
import type { Routes } from './index.js'
import { saleOf } from './sales.js'
import { type ApiOptions, orWalletNotFound, SalePath, WalletPath, walletOf } from './v1.js'

const EVENT_STREAM = 'text/event-stream'

const Chosen = Type.Object({
  events: Type.Optional(
    Type.String({
      maxLength: 255,
      description: `Which, separated by commas: ${EVENT_NAMES.join(', ')}. Without it all that is told of wallets`,
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
    description:
      'Server-sent events, as they happen. `data` is JSON with `id`, `event`, `at`, `wallet` (or `sale`) and facts',
    content: { [EVENT_STREAM]: { schema: Type.String() } },
  },
}

export const eventRoutes: Routes<ApiOptions> = async (app, options) => {
  const shared = { tags: ['events'], querystring: Chosen, headers: Resumed, response: Streamed }

  const all = {
    operationId: 'streamEvents',
    summary: 'What happens to all wallets that the caller may see, and in sales, as server-sent events',
    description:
      'In order for each wallet, at least once. With a wallet token: of its wallet. What happens in sales is told to who names it in `events`.',
    ...shared,
  }
  const config = { scope: 'read', refusals: ['events_gone'] } as const
  app.get('/events', { schema: all, config, exposeHeadRoute: false }, async (request, reply) =>
    stream(options, request, reply, { wallet: request.caller.wallet, sale: null }),
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
    return stream(options, request, reply, { wallet: request.params.id, sale: null })
  })

  const sale = {
    operationId: 'streamSaleEvents',
    summary: 'What happens in one sale, as server-sent events',
    description: 'In order for each checkout, at least once.',
    params: SalePath,
    ...shared,
  }
  const ofSale = { scope: 'read', refusals: ['events_gone', 'sale_not_found'] } as const
  app.get('/sales/:sale/events', { schema: sale, config: ofSale, exposeHeadRoute: false }, async (request, reply) => {
    const { caller, params } = request
    if ((await saleOf(options, caller, params.sale).status()) === null) throw new HoldfastError('sale_not_found')
    return stream(options, request, reply, { wallet: null, sale: params.sale }, SALE_EVENT_NAMES)
  })
}

type EventRequest = FastifyRequest<{ Querystring: { events?: string; balanceLow?: number } }>

async function stream(
  { events }: ApiOptions,
  request: EventRequest,
  reply: FastifyReply,
  of: Pick<Subscription, 'wallet' | 'sale'>,
  byDefault?: readonly EventName[],
) {
  const { caller, query, headers } = request
  const { tenant, walletPrefix } = caller
  const chosen = chosenEvents(query.events === undefined ? byDefault : namesIn(query.events))
  const readable = await events.open({
    subscription: { tenant, ...of, walletPrefix, events: chosen, balanceLow: query.balanceLow ?? null },
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
