import { EVENT_NAMES, HoldfastError } from 'holdfast'
import { Type } from 'typebox'
import { type Caller, requireKey } from '../access/index.js'
import { AfterSeq, Balance, Count, oneOf, orNull, PageLimit, pageOf, refTo, Time, Webhook } from '../schemas/index.js'
import type { Webhook as WebhookFacts } from '../webhooks/index.js'
import type { Routes } from './index.js'
import type { ApiOptions } from './v1.js'

const WebhookPath = Type.Object({ webhook: Type.String({ pattern: '^[A-Za-z0-9_-]{1,64}$' }) })

const Creation = Type.Object(
  {
    url: Type.String({
      minLength: 1,
      maxLength: 2_048,
      description: 'Who is told, by POST: https, at a public address',
    }),
    events: Type.Optional(
      Type.Array(oneOf(EVENT_NAMES), {
        minItems: 1,
        maxItems: EVENT_NAMES.length,
        description: 'Without it all that is told of wallets',
      }),
    ),
    walletPrefix: Type.Optional(
      Type.String({
        maxLength: 255,
        pattern: '^\\P{Cc}*$',
        description: 'Only of wallets whose id begins with it. No control characters',
      }),
    ),
    balanceLow: Type.Optional(
      Type.Integer({ ...Balance, description: '`balance.low`: when `available` falls below this. Without it never' }),
    ),
  },
  { additionalProperties: false },
)

const Dead = Type.Object({
  id: Count,
  event: oneOf(EVENT_NAMES),
  data: Type.Unknown({ description: 'The event, as it would be sent' }),
  tries: Count,
  reason: orNull(Type.String()),
  deadAt: Time,
})

/** Who may see and change where events are told: one who administers, and only within its wallets. */
export const webhookRoutes: Routes<ApiOptions> = async (app, { webhooks }) => {
  const tags = ['webhooks']
  const config = { scope: 'admin' } as const
  const ofOne = { scope: 'admin', refusals: ['webhook_not_found'] } as const

  /** The same answer for those of others and those that there are not. */
  const find = async (caller: Caller, id: string): Promise<WebhookFacts> => {
    requireKey(caller)
    const found = await webhooks.find(id, caller.tenant)
    if (!found.walletPrefix.startsWith(caller.walletPrefix)) throw new HoldfastError('webhook_not_found')
    return found
  }

  const create = {
    operationId: 'createWebhook',
    summary: 'Have events told to an address. The secret that they are signed with is shown this once',
    tags,
    body: Creation,
    response: { 200: Type.Object({ ...Webhook.properties, secret: Type.String() }) },
  }
  app.post('/webhooks', { schema: create, config }, async ({ caller, body }) => {
    requireKey(caller)
    const { url, events, walletPrefix = caller.walletPrefix, balanceLow = null } = body
    if (!walletPrefix.startsWith(caller.walletPrefix)) {
      throw new HoldfastError('forbidden', 'The key is for wallets whose id begins otherwise')
    }
    const asked = { tenant: caller.tenant, url, events, walletPrefix, balanceLow }
    const { webhook, secret } = await webhooks.create(asked, 'body.url')
    return { ...publicOf(webhook), secret }
  })

  const list = {
    operationId: 'listWebhooks',
    summary: 'Where events are told',
    tags,
    response: { 200: Type.Object({ data: Type.Array(refTo(Webhook)) }) },
  }
  app.get('/webhooks', { schema: list, config }, async ({ caller }) => {
    requireKey(caller)
    const all = await webhooks.list(caller.tenant)
    return { data: all.filter(({ walletPrefix }) => walletPrefix.startsWith(caller.walletPrefix)).map(publicOf) }
  })

  const get = {
    operationId: 'getWebhook',
    summary: 'A webhook, and how it is doing',
    tags,
    params: WebhookPath,
    response: { 200: refTo(Webhook) },
  }
  app.get('/webhooks/:webhook', { schema: get, config: ofOne }, async ({ caller, params }) =>
    publicOf(await find(caller, params.webhook)),
  )

  const remove = {
    operationId: 'deleteWebhook',
    summary: 'Tell it nothing more. What waits for it is gone',
    tags,
    params: WebhookPath,
    response: { 200: refTo(Webhook) },
  }
  app.delete('/webhooks/:webhook', { schema: remove, config: ofOne }, async ({ caller, params }) => {
    const found = await find(caller, params.webhook)
    await webhooks.delete(found.id)
    return publicOf(found)
  })

  const dead = {
    operationId: 'listDeadDeliveries',
    summary: 'Events that it did not take within a day, oldest first, a page at a time',
    tags,
    params: WebhookPath,
    querystring: Type.Object({ after: AfterSeq, limit: PageLimit }),
    response: { 200: pageOf(Dead, Type.Integer()) },
  }
  app.get('/webhooks/:webhook/dead', { schema: dead, config: ofOne }, async ({ caller, params, query }) => {
    const { id } = await find(caller, params.webhook)
    const data = await webhooks.dead(id, query.after, query.limit)
    return { data: [...data], next: data.length === query.limit ? (data.at(-1)?.id ?? null) : null }
  })

  const replay = {
    operationId: 'replayDeliveries',
    summary: 'Have events that are dead told again, for another day: some, or all',
    tags,
    params: WebhookPath,
    body: Type.Object(
      {
        deliveries: Type.Optional(
          Type.Array(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }), { minItems: 1, maxItems: 1_000 }),
        ),
      },
      { additionalProperties: false },
    ),
    response: { 200: Type.Object({ replayed: Count }) },
  }
  app.post('/webhooks/:webhook/replay', { schema: replay, config: ofOne }, async ({ caller, params, body }) => {
    const { id } = await find(caller, params.webhook)
    return { replayed: await webhooks.replay(id, body.deliveries) }
  })
}

function publicOf({ tenant, events, ...facts }: WebhookFacts) {
  return { ...facts, events: [...events] }
}
