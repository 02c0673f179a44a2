import { HoldfastError } from 'holdfast'
import { Type } from 'typebox'
import { requireKey, requireScope } from '../access/index.js'
import { departureOf } from '../http/departure.js'
import {
  AfterSeq,
  AmountOrZero,
  EntryPage,
  Metadata,
  PageLimit,
  PastBalance,
  Pending,
  refTo,
  Wallet,
  WalletPage,
} from '../schemas/index.js'
import type { Routes } from './index.js'
import { type ApiOptions, orWalletNotFound, WalletPath, walletOf } from './v1.js'

const Opening = Type.Object(
  {
    currency: Type.String({ minLength: 1, maxLength: 255, description: 'A currency, or any asset code of your own' }),
    creditLimit: Type.Optional(
      Type.Integer({ ...AmountOrZero, description: 'How far `available` may go below zero. Needs the scope admin' }),
    ),
    metadata: Type.Optional(Metadata),
  },
  { additionalProperties: false },
)

export const walletRoutes: Routes<ApiOptions> = async (app, options) => {
  const tags = ['wallets']

  const list = {
    operationId: 'listWallets',
    summary: 'Wallets in the order of their ids, a page at a time',
    tags,
    querystring: Type.Object({
      after: Type.Optional(Type.String({ maxLength: 255 })),
      limit: PageLimit,
    }),
    response: { 200: WalletPage },
  }
  app.get('/wallets', { schema: list, config: { scope: 'read' } }, async (request, reply) => {
    const { caller, query } = request
    if (caller.wallet !== null) requireKey(caller)
    const { limit, after } = query
    const data = await options.holdfast.forTenant(caller.tenant).wallets({
      limit,
      ...(after && { after }),
      ...(caller.walletPrefix !== '' && { prefix: caller.walletPrefix }),
      signal: departureOf(reply),
    })
    return { data, next: data.length === limit ? (data.at(-1)?.id ?? null) : null }
  })

  const open = {
    operationId: 'openWallet',
    summary: 'Open a wallet. The same again changes nothing',
    tags,
    params: WalletPath,
    body: Opening,
    response: { 200: refTo(Wallet) },
  }
  app.put(
    '/wallets/:id',
    { schema: open, config: { scope: 'fund', refusals: ['wallet_exists'] } },
    async (request, reply) => {
      const { caller, params, body } = request
      if (body.creditLimit) requireScope(caller, 'admin')
      return walletOf(options, caller, params.id).open({ ...body, signal: departureOf(reply) })
    },
  )

  const get = {
    operationId: 'getWallet',
    summary: 'A wallet as it stands',
    tags,
    params: WalletPath,
    querystring: Type.Object({ pending: Type.Optional(Pending) }),
    response: { 200: refTo(Wallet) },
  }
  const reading = { scope: 'read', refusals: ['wallet_not_found'] } as const
  app.get('/wallets/:id', { schema: get, config: reading }, async (request, reply) => {
    const { caller, params, query } = request
    const wallet = walletOf(options, caller, params.id)
    const state = await wallet.get({ pending: query.pending ?? false, signal: departureOf(reply) })
    if (state === null) throw new HoldfastError('wallet_not_found')
    return state
  })

  const at = {
    operationId: 'getWalletAt',
    summary: 'Its balance after an entry, or at a time of the past',
    tags,
    params: WalletPath,
    querystring: Type.Object({
      seq: Type.Optional(
        Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'After this entry' }),
      ),
      time: Type.Optional(
        Type.Integer({
          minimum: -8_640_000_000_000_000,
          maximum: 8_640_000_000_000_000,
          description: 'Milliseconds since 1970',
        }),
      ),
    }),
    response: { 200: refTo(PastBalance) },
  }
  const readingPast = { scope: 'read', refusals: ['wallet_not_found', 'entry_not_found'] } as const
  app.get('/wallets/:id/at', { schema: at, config: readingPast }, async (request, reply) => {
    const { caller, params, query } = request
    const balance = await walletOf(options, caller, params.id).at({ ...query, signal: departureOf(reply) })
    if (balance === null) throw new HoldfastError('wallet_not_found')
    return balance
  })

  const entries = {
    operationId: 'listEntries',
    summary: 'Its journal, oldest first, a page at a time',
    tags: ['entries'],
    params: WalletPath,
    querystring: Type.Object({ after: AfterSeq, limit: PageLimit, pending: Type.Optional(Pending) }),
    response: { 200: EntryPage },
  }
  app.get('/wallets/:id/entries', { schema: entries, config: reading }, async (request, reply) => {
    const { caller, params, query } = request
    const wallet = walletOf(options, caller, params.id)
    const data = await wallet.entries({ ...query, signal: departureOf(reply) })
    const next = data.length === query.limit ? (data.at(-1)?.seq ?? null) : null
    return orWalletNotFound(wallet, { data, next }, data.length === 0)
  })
}
