import { Type } from 'typebox'
import { requireKey, requireWallet } from '../access/index.js'
import { Amount, AmountOrZero, Id, refTo, Transfer } from '../schemas/index.js'
import type { Routes } from './index.js'
import { COMMON_BODY } from './operations.js'
import { type ApiOptions, KeyedHeaders, keyOf, waitOf } from './v1.js'

export const transferRoutes: Routes<ApiOptions> = async (app, { holdfast }) => {
  const schema = {
    operationId: 'createTransfer',
    summary: 'Move money from one wallet to another, exactly once. The key is one of the source wallet',
    tags: ['transfers'],
    headers: KeyedHeaders,
    body: Type.Object(
      {
        from: Id,
        to: Id,
        amount: Amount,
        fee: Type.Optional(Type.Integer({ ...AmountOrZero, description: 'What the source pays on top' })),
        ...COMMON_BODY,
      },
      { additionalProperties: false },
    ),
    response: { 200: refTo(Transfer) },
  }
  const config = {
    scope: 'spend',
    refusals: ['wallet_not_found', 'insufficient_funds', 'wallet_frozen', 'wallet_closed'],
  } as const
  app.post('/transfers', { schema, config }, async (request, reply) => {
    const { from, to, amount, ...others } = request.body
    // The answer tells the balances of both.
    requireKey(request.caller)
    requireWallet(request.caller, from)
    requireWallet(request.caller, to)
    // Always committed before it is acknowledged, whatever is preferred.
    const { signal } = waitOf(request, reply)
    return holdfast
      .forTenant(request.caller.tenant)
      .transfer(from, to, amount, { ...others, key: keyOf(request), signal })
  })
}
