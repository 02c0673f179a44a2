import { randomUUID } from 'node:crypto'
import type { Checkout, CheckoutState, PayOptions, Purchase, SaleAttempt, SaleItemState, SaleState } from 'holdfast'
import { type Config, ConfigError } from '../../config/index.js'
import type { Run } from '../command.js'
import { type Page, pageText, query, showing } from '../showing.js'
import { itemsOf } from './item-lists.js'
import { attemptTable, checkoutText, itemTable, saleTable } from './texts.js'

export const salePath = ({ saleId }: Config): string => `/sales/${encodeURIComponent(saleId as string)}`
const codePath = ({ checkoutCode }: Config): string => `/checkouts/${encodeURIComponent(checkoutCode as string)}`

const oneSale = (sale: SaleState): string => saleTable([sale])
const AGAIN = 'That was done before: this is the first answer again.'
const withReplay = (text: string, { replayed }: { replayed: boolean }): string =>
  replayed ? `${text}\n\n${AGAIN}` : text

export const open: Run = showing<SaleState>((config) => {
  const { perUser, startsAt, endsAt, saleLimit: limit, checkoutTtlMs: checkoutTtl, reserve, buckets } = config
  const body = { items: itemsOf(config), perUser, startsAt, endsAt, limit, checkoutTtl, reserve, buckets }
  return { method: 'PUT', path: salePath(config), body }
}, oneSale)

export const status: Run = showing<SaleState>((config) => ({ path: salePath(config) }), oneSale)

export const list: Run = showing<Page<SaleState>>(
  ({ afterId: after, limit }) => ({ path: `/sales${query({ after, limit })}` }),
  (page) => pageText(page, saleTable, 'There are no sales.'),
)

export const items: Run = showing<Page<SaleItemState>>(
  (config) => ({ path: `${salePath(config)}/items${query({ after: config.afterItem, limit: config.limit })}` }),
  (page) => pageText(page, itemTable, 'There are no such items.'),
)

export const attempts: Run = showing<Page<SaleAttempt>>(
  (config) => {
    const { saleUser: user, afterAttempt: after, limit } = config
    return { path: `${salePath(config)}/attempts${query({ user, after, limit })}` }
  },
  (page) => pageText(page, attemptTable, 'There are no such attempts.'),
)

export const checkOut: Run = showing<Checkout>(
  (config) => ({
    method: 'POST',
    path: `${salePath(config)}/checkouts`,
    body: { user: config.saleUser, items: config.saleItems },
    key: config.key ?? randomUUID(),
  }),
  (checkout) => withReplay(checkoutText(checkout), checkout),
)

export const running: Run = showing<Omit<Checkout, 'replayed'>>(
  (config) => ({ path: `${salePath(config)}/checkouts${query({ user: config.saleUser })}` }),
  checkoutText,
)

export const code: Run = showing<CheckoutState>((config) => ({ path: codePath(config) }), checkoutText)

export const purchase: Run = showing<Purchase>(
  (config) => ({
    method: 'POST',
    path: `${codePath(config)}/purchase`,
    body: { ...(config.take !== undefined && { take: config.take }), ...payment(config) },
  }),
  (bought) => withReplay(checkoutText({ ...bought, status: 'purchased' }), bought),
)

export const cancel: Run = showing<{ replayed: boolean }>(
  (config) => ({ method: 'DELETE', path: codePath(config) }),
  (answer) => withReplay('Cancelled: what was in it can be bought by others.', answer),
)

export const close: Run = showing<SaleState>(
  (config) => ({ method: 'POST', path: `${salePath(config)}/close`, body: {} }),
  oneSale,
)

function payment({ payWallet: wallet, price, counter, metadata }: Config): { pay?: PayOptions } {
  if (wallet === undefined || price === undefined) {
    if (counter === undefined && metadata === undefined) return {}
    throw new ConfigError('--counter, --metadata: expected --pay-with beside them, got none')
  }
  const kept = metadata === undefined ? {} : { metadata: JSON.parse(metadata) as unknown }
  return { pay: { wallet, price, ...(counter !== undefined && { counter }), ...kept } }
}
