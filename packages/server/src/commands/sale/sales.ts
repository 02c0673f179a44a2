import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Checkout, CheckoutState, ItemOptions, Purchase, SaleItemState, SaleState } from 'holdfast'
import { type Config, ConfigError } from '../../config/index.js'
import { itemList, oneItem } from '../../config/options/sales.js'
import type { Run } from '../command.js'
import { type Page, pageText, query, showing } from '../showing.js'
import { checkoutText, itemTable, saleTable } from './texts.js'

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
    body: config.take === undefined ? {} : { take: config.take },
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

function itemsOf({ saleItems, saleItemsFile: file }: Config): readonly ItemOptions[] {
  if ((saleItems === undefined) === (file === undefined)) {
    const got = file === undefined ? 'neither' : 'both'
    throw new ConfigError(`Expected either --items or --items-file, got ${got}`)
  }
  return saleItems ?? readItems(file as string)
}

function readItems(file: string): readonly ItemOptions[] {
  let text: string
  try {
    text = readFileSync(file, 'utf8').trim()
  } catch (error) {
    throw new ConfigError(
      `--items-file: expected a file that can be read, got ${(error as NodeJS.ErrnoException).code}`,
    )
  }
  if (text.startsWith('[')) {
    const items = itemList(text)
    if (items) return items
    throw new ConfigError('--items-file: expected a JSON array, or one item a line, got JSON that is broken')
  }
  return text.split(/\r?\n/).map((line, at) => {
    const item = oneItem(line.trim())
    if (item) return item
    throw new ConfigError(`--items-file: expected an id or id=quantity in line ${at + 1}, got something else`)
  })
}
