import type { MeterOptions } from 'holdfast'
import { Type } from 'typebox'
import { Amount, Id, Metadata, oneOf, refTo, Session, SessionReceipt, TtlMs } from '../schemas/index.js'
import type { Routes } from './index.js'
import { type ApiOptions, KeyedHeaders, keyOf, WalletPath, waitOf, walletOf } from './v1.js'

const COMMON = {
  rate: Amount,
  minimum: Type.Optional(Type.Integer({ ...Amount, description: 'How much must be there to begin. Default: `rate`' })),
  heartbeat: Type.Optional(Type.Integer({ ...TtlMs, description: 'Without a tick for so long (ms) it ends' })),
  extendAt: Type.Optional(
    Type.Number({ minimum: 0.01, maximum: 1, description: 'Reserve more when this share is used. In hundredths' }),
  ),
  counter: Type.Optional(Id),
  metadata: Type.Optional(Metadata),
}

const ByTime = Type.Object(
  {
    by: Type.Literal('time'),
    per: Type.Integer({ ...TtlMs, description: 'How long a period is, ms' }),
    reserve: Type.Integer({ ...TtlMs, description: 'How many ms are reserved at a time' }),
    rounding: Type.Optional(oneOf(['started', 'completed', 'prorated'])),
    ...COMMON,
  },
  { additionalProperties: false },
)
const ByUnits = Type.Object(
  {
    by: Type.Literal('units'),
    reserve: Type.Integer({ ...Amount, description: 'How many units are reserved at a time' }),
    ...COMMON,
  },
  { additionalProperties: false },
)
const Terms = Type.Unsafe<Omit<MeterOptions, 'key'>>({
  type: 'object',
  required: ['by'],
  discriminator: { propertyName: 'by' },
  oneOf: [ByTime, ByUnits],
})

/** Beginning and reading; ticks and ends stand in the table of operations. */
export const sessionRoutes: Routes<ApiOptions> = async (app, options) => {
  const tags = ['sessions']

  const begin = {
    operationId: 'beginSession',
    summary: 'Begin a metered session: a call by the minute, a stream by the token. Its id is the key',
    tags,
    params: WalletPath,
    headers: KeyedHeaders,
    body: Terms,
    response: { 200: refTo(SessionReceipt) },
  }
  const beginning = {
    scope: 'spend',
    refusals: ['wallet_not_found', 'insufficient_funds', 'wallet_frozen', 'wallet_closed'],
  } as const
  app.post('/wallets/:id/sessions', { schema: begin, config: beginning }, async (request, reply) => {
    const { caller, params, body } = request
    const terms = { ...body, key: keyOf(request), ...waitOf(request, reply) } as MeterOptions
    return walletOf(options, caller, params.id).meter(terms)
  })

  const get = {
    operationId: 'getSession',
    summary: 'How a session stands',
    tags,
    params: Type.Object({ id: Id, session: Id }),
    response: { 200: refTo(Session) },
  }
  const reading = { scope: 'read', refusals: ['wallet_not_found', 'session_not_found'] } as const
  app.get('/wallets/:id/sessions/:session', { schema: get, config: reading }, async ({ caller, params }) =>
    walletOf(options, caller, params.id).sessionRef(params.session).get(),
  )
}
