import { HoldfastError } from 'holdfast'
import { Type } from 'typebox'
import { departureOf } from '../http/departure.js'
import { AfterSeq, Hold, HoldExplanation, HoldPage, Id, PageLimit, Pending, refTo } from '../schemas/index.js'
import type { Routes } from './index.js'
import { type ApiOptions, orWalletNotFound, WalletPath, walletOf } from './v1.js'

const HoldPath = Type.Object({ id: Id, hold: Id })

/** Reading; what changes a hold stands in the table of operations. */
export const holdRoutes: Routes<ApiOptions> = async (app, options) => {
  const tags = ['holds']

  const list = {
    operationId: 'listHolds',
    summary: 'Its open holds, oldest first, a page at a time',
    tags,
    params: WalletPath,
    querystring: Type.Object({ after: AfterSeq, limit: PageLimit, pending: Type.Optional(Pending) }),
    response: { 200: HoldPage },
  }
  const listing = { scope: 'read', refusals: ['wallet_not_found'] } as const
  app.get('/wallets/:id/holds', { schema: list, config: listing }, async (request, reply) => {
    const { caller, params, query } = request
    const wallet = walletOf(options, caller, params.id)
    const data = await wallet.holds({ ...query, signal: departureOf(reply) })
    const next = data.length === query.limit ? (data.at(-1)?.seq ?? null) : null
    return orWalletNotFound(wallet, { data, next }, data.length === 0)
  })

  const reading = { scope: 'read', refusals: ['wallet_not_found', 'hold_not_found'] } as const
  const get = {
    operationId: 'getHold',
    summary: 'How a hold stands, open or closed',
    tags,
    params: HoldPath,
    querystring: Type.Object({ pending: Type.Optional(Pending) }),
    response: { 200: refTo(Hold) },
  }
  app.get('/wallets/:id/holds/:hold', { schema: get, config: reading }, async (request, reply) => {
    const { caller, params, query } = request
    const wallet = walletOf(options, caller, params.id)
    const found = await wallet.holdRef(params.hold).get({ ...query, signal: departureOf(reply) })
    const hold = await orWalletNotFound(wallet, found, found === null)
    if (hold === null) throw new HoldfastError('hold_not_found')
    return hold
  })

  const explain = {
    operationId: 'explainHold',
    summary: 'What happened to its money, entry by entry, and where it is now',
    tags,
    params: HoldPath,
    querystring: Type.Object({
      after: AfterSeq,
      limit: Type.Integer({ minimum: 1, maximum: 10_000, default: 1_000 }),
      pending: Type.Optional(Pending),
    }),
    response: { 200: refTo(HoldExplanation) },
  }
  app.get('/wallets/:id/holds/:hold/explain', { schema: explain, config: reading }, async (request, reply) => {
    const { caller, params, query } = request
    const hold = walletOf(options, caller, params.id).holdRef(params.hold)
    const { steps, ...told } = await hold.explain({ ...query, signal: departureOf(reply) })
    return { ...told, steps: [...steps] }
  })
}
