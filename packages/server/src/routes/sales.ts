import { type CheckoutRef, checkoutDigest, HoldfastError, type Sale as SaleHandle } from 'holdfast'
import { Type } from 'typebox'
import { type Caller, requireKey, requireScope, requireWholeTenant } from '../access/index.js'
import { departureOf } from '../http/departure.js'
import {
  AfterSeq,
  Cancellation,
  Checkout,
  CheckoutLines,
  CheckoutState,
  Code,
  Id,
  oneOf,
  PageLimit,
  Pay,
  Purchase,
  RunningCheckout,
  refTo,
  Sale,
  SaleAttemptPage,
  SaleItemPage,
  SaleOpening,
  SalePage,
} from '../schemas/index.js'
import type { Routes } from './index.js'
import { type ApiOptions, fewLarge, KeyedHeaders, keyOf, SalePath, UnkeyedHeaders, waitOf } from './v1.js'

/** A list of some 200,000 items; a sale of more is opened by a program that has the library. Only of who may sell, which is checked before. */
export const OPENING_MAX_BYTES = 8 * 1024 * 1024

const CodePath = Type.Object({ code: Code })

const CheckoutBody = Type.Object(
  {
    user: Type.String({
      ...Id,
      description: 'Who buys, by an id of yours. It is kept nowhere: what stands for it is a keyed hash',
    }),
    items: CheckoutLines,
  },
  { additionalProperties: false },
)
const PurchaseBody = Type.Object(
  {
    take: Type.Optional(
      oneOf(
        ['all', 'left'],
        'Where stock is set aside only when it is bought: all or nothing (default), or what is left',
      ),
    ),
    pay: Type.Optional(Pay),
  },
  { additionalProperties: false },
)

/** Sales are the tenant's as a whole, and their buyers are no wallets: a key for some wallets, or a token for one, has no business here. */
export function requireSales(caller: Caller): void {
  requireKey(caller)
  requireWholeTenant(caller)
}

export function saleOf({ holdfast }: ApiOptions, caller: Caller, id: string): SaleHandle {
  requireSales(caller)
  return holdfast.forTenant(caller.tenant).sale(id)
}

function checkoutOf({ holdfast }: ApiOptions, caller: Caller, code: string): CheckoutRef {
  requireSales(caller)
  return holdfast.forTenant(caller.tenant).checkoutRef(code)
}

/**
 * Who opens and closes sales (`sell`), who buys in them (`buy`) and who looks on (`read`) are three. Whatever answers with a code is for
 * those who may buy with it. Codes stand in paths, never in queries: routes are logged by their pattern.
 */
export const saleRoutes: Routes<ApiOptions> = async (app, options) => {
  // An item may have any name, and its price stands under it. Every member of these bodies is checked, and none is taken over into another object
  // by its name.
  app.addContentTypeParser('application/json', { parseAs: 'string' }, app.getDefaultJsonParser('ignore', 'error'))
  const tags = ['sales']
  const reading = { scope: 'read', refusals: ['sale_not_found'] } as const

  const list = {
    operationId: 'listSales',
    summary: 'Sales in the order of their ids, a page at a time',
    tags,
    querystring: Type.Object({ after: Type.Optional(Type.String({ maxLength: 255 })), limit: PageLimit }),
    response: { 200: SalePage },
  }
  app.get('/sales', { schema: list, config: { scope: 'read' } }, async ({ caller, query }, reply) => {
    requireSales(caller)
    const { limit, after } = query
    const asked = { limit, ...(after && { after }), signal: departureOf(reply) }
    const data = await options.holdfast.forTenant(caller.tenant).sales(asked)
    return { data, next: data.length === limit ? (data.at(-1)?.id ?? null) : null }
  })

  const open = {
    operationId: 'openSale',
    summary: 'Open a sale, and fill it. The same again changes nothing, and finishes what was begun',
    tags,
    params: SalePath,
    body: SaleOpening,
    response: { 200: refTo(Sale) },
  }
  app.put(
    '/sales/:sale',
    {
      schema: open,
      onRequest: fewLarge(options.gate),
      bodyLimit: OPENING_MAX_BYTES,
      config: { scope: 'sell', refusals: ['sale_exists'] },
    },
    async ({ caller, params, body }, reply) =>
      saleOf(options, caller, params.sale).open({ ...body, signal: departureOf(reply) }),
  )

  const get = {
    operationId: 'getSale',
    summary: 'A sale as it stands: what can be had, what lies in checkouts, what is sold',
    tags,
    params: SalePath,
    response: { 200: refTo(Sale) },
  }
  app.get('/sales/:sale', { schema: get, config: reading }, async ({ caller, params }, reply) => {
    const state = await saleOf(options, caller, params.sale).status({ signal: departureOf(reply) })
    if (state === null) throw new HoldfastError('sale_not_found')
    return state
  })

  const items = {
    operationId: 'listSaleItems',
    summary: 'Its items in their order, and what is left of each, a page at a time',
    tags,
    params: SalePath,
    querystring: Type.Object({ after: AfterSeq, limit: PageLimit }),
    response: { 200: SaleItemPage },
  }
  app.get('/sales/:sale/items', { schema: items, config: reading }, async ({ caller, params, query }, reply) => {
    const data = await saleOf(options, caller, params.sale).items({ ...query, signal: departureOf(reply) })
    return { data, next: data.length === query.limit ? (data.at(-1)?.number ?? null) : null }
  })

  const attempts = {
    operationId: 'listSaleAttempts',
    summary: 'What was tried in it, refused or not, in the order of its time, a page at a time',
    tags,
    params: SalePath,
    querystring: Type.Object({
      user: Type.Optional(Type.String({ ...Id, description: 'Only of this user' })),
      after: Type.Optional(Type.String({ pattern: '^(\\d{1,15}-){2}\\d{1,15}$' })),
      limit: PageLimit,
    }),
    response: { 200: SaleAttemptPage },
  }
  app.get('/sales/:sale/attempts', { schema: attempts, config: reading }, async ({ caller, params, query }, reply) => {
    const sale = saleOf(options, caller, params.sale)
    const asked = await sale.attempts({ ...query, signal: departureOf(reply) })
    if (asked.length === 0 && (await sale.status()) === null) throw new HoldfastError('sale_not_found')
    // Whoever may only look on is told of no code.
    const data = asked.map(({ checkout, ...attempt }) => ({
      ...attempt,
      ...(checkout !== undefined && { checkout: checkoutDigest(checkout) }),
    }))
    return { data, next: data.length === query.limit ? (data.at(-1)?.position ?? null) : null }
  })

  const close = {
    operationId: 'closeSale',
    summary: 'Take no more checkouts. What is in one can be bought until it runs out',
    tags,
    params: SalePath,
    headers: UnkeyedHeaders,
    body: Type.Object({}, { additionalProperties: false }),
    response: { 200: refTo(Sale) },
  }
  const closing = { scope: 'sell', refusals: ['sale_not_found'] } as const
  app.post('/sales/:sale/close', { schema: close, config: closing }, async (request, reply) =>
    saleOf(options, request.caller, request.params.sale).close(waitOf(request, reply)),
  )

  const checkOut = {
    operationId: 'createCheckout',
    summary: "Set items aside for a user, in the user's running checkout or in a new one: all of them or none",
    tags,
    params: SalePath,
    headers: KeyedHeaders,
    body: CheckoutBody,
    response: { 200: refTo(Checkout) },
  }
  const checkingOut = {
    scope: 'buy',
    refusals: ['sale_not_found', 'sale_not_active', 'duplicate_item', 'user_limit', 'sold_out'],
  } as const
  app.post('/sales/:sale/checkouts', { schema: checkOut, config: checkingOut }, async (request, reply) => {
    const sale = saleOf(options, request.caller, request.params.sale)
    return sale.checkout({ ...request.body, key: keyOf(request), ...waitOf(request, reply) })
  })

  const running = {
    operationId: 'getRunningCheckout',
    summary: "A user's running checkout, with its code",
    tags,
    params: SalePath,
    querystring: Type.Object({ user: Id }),
    response: { 200: refTo(RunningCheckout) },
  }
  const finding = { scope: 'buy', refusals: ['sale_not_found', 'checkout_not_found'] } as const
  app.get('/sales/:sale/checkouts', { schema: running, config: finding }, async ({ caller, params, query }, reply) => {
    const sale = saleOf(options, caller, params.sale)
    const found = await sale.checkoutOf(query.user, { signal: departureOf(reply) })
    if (found === null) throw new HoldfastError('checkout_not_found')
    return found
  })

  const ofACode = ['checkout_not_found', 'checkout_closed', 'checkout_expired'] as const
  const getOne = {
    operationId: 'getCheckout',
    summary: 'How a checkout stands',
    tags,
    params: CodePath,
    response: { 200: refTo(CheckoutState) },
  }
  const gettingOne = { scope: 'buy', refusals: ['checkout_not_found'] } as const
  app.get('/checkouts/:code', { schema: getOne, config: gettingOne }, async ({ caller, params }, reply) => {
    return checkoutOf(options, caller, params.code).get({ signal: departureOf(reply) })
  })

  const purchase = {
    operationId: 'purchaseCheckout',
    summary: 'Buy what is in a checkout. Again, by whoever: the first answer',
    tags,
    params: CodePath,
    headers: UnkeyedHeaders,
    body: PurchaseBody,
    response: { 200: refTo(Purchase) },
  }
  const byTheWallet = ['wallet_not_found', 'insufficient_funds', 'wallet_frozen', 'wallet_closed'] as const
  const purchasing = {
    scope: 'buy',
    refusals: [...ofACode, 'sale_not_active', 'user_limit', 'sold_out', ...byTheWallet],
  } as const
  app.post('/checkouts/:code/purchase', { schema: purchase, config: purchasing }, async (request, reply) => {
    const { caller, params, body } = request
    const checkout = checkoutOf(options, caller, params.code)
    const { signal, ...preferred } = waitOf(request, reply)
    if (!body.pay) return checkout.purchase({ ...body, ...preferred, signal })
    // Who pays takes money out of a wallet. That is always committed before it is acknowledged, whatever is preferred.
    requireScope(caller, 'spend')
    return checkout.purchase({ ...body, signal })
  })

  const cancel = {
    operationId: 'cancelCheckout',
    summary: 'Give back what is in a checkout. Again: the first answer',
    tags,
    params: CodePath,
    headers: UnkeyedHeaders,
    response: { 200: refTo(Cancellation) },
  }
  const cancelling = { scope: 'buy', refusals: ofACode } as const
  app.delete('/checkouts/:code', { schema: cancel, config: cancelling }, async (request, reply) =>
    checkoutOf(options, request.caller, request.params.code).cancel(waitOf(request, reply)),
  )
}
