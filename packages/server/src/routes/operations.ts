import { Type } from 'typebox'
import { OPERATIONS, type Operation } from '../operations/index.js'
import { Id, Metadata } from '../schemas/index.js'
import type { Routes } from './index.js'
import { type ApiOptions, KeyedHeaders, keyOf, UnkeyedHeaders, waitOf, walletOf } from './v1.js'

/** What every operation may carry. */
export const COMMON_BODY = {
  counter: Type.Optional(Type.String({ ...Id, description: 'The other side of the books; not wallets or transfers' })),
  metadata: Type.Optional(Metadata),
}

/** The table of operations, as routes. */
export const operationRoutes: Routes<ApiOptions> = async (app, options) => {
  for (const operation of OPERATIONS) {
    const config = { scope: operation.scope, refusals: ['wallet_not_found', ...operation.refusals] } as const
    app.post(`/wallets/:id${operation.path}`, { schema: schemaOf(operation), config }, async (request, reply) => {
      const { id, hold = '', session = '' } = request.params as { id: string; hold?: string; session?: string }
      const { counter, metadata, ...body } = request.body as { counter?: string; metadata?: unknown }
      const subject = { wallet: walletOf(options, request.caller, id), hold, session }
      return operation.run(subject, body, {
        key: operation.keyed ? keyOf(request) : '',
        ...(counter !== undefined && { counter }),
        ...(metadata !== undefined && { metadata }),
        ...waitOf(request, reply),
      })
    })
  }
}

function schemaOf({ operationId, summary, tag, path, keyed, body, answer }: Operation) {
  return {
    operationId,
    summary,
    tags: [tag],
    params: Type.Object({
      id: Id,
      ...(path.includes(':hold') && { hold: Id }),
      ...(path.includes(':session') && { session: Id }),
    }),
    headers: keyed ? KeyedHeaders : UnkeyedHeaders,
    body: Type.Object({ ...body, ...COMMON_BODY }, { additionalProperties: false }),
    response: { 200: answer },
  }
}
