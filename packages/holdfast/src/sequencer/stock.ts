import { type Buyer, type Checkout, lineWords, type Stock } from '../machine/index.js'

/** How many fields the stock of a sale has in Redis, but for its epoch. */
export const stockSize = ({ taken, buyers, checkouts, keys, until }: Stock): number =>
  (until > 0 ? 1 : 0) + taken.size + buyers.size + checkouts.size + keys.size

/** As field, value, field, value, …: so many words at a time. */
export function* stockParts(stock: Stock, words: number): Generator<string[]> {
  let part: string[] = []
  for (const [field, value] of stockFields(stock)) {
    part.push(field, value)
    if (part.length < words) continue
    yield part
    part = []
  }
  if (part.length > 0) yield part
}

/** The stock of a sale as it stands in Redis (`lua/wallet/stock.lua`), but for its epoch. */
export function* stockFields({
  taken,
  buyers,
  checkouts,
  keys,
  until,
}: Stock): Generator<[field: string, value: string]> {
  if (until > 0) yield ['until', `${until}`]
  for (const [item, count] of taken) yield [`i:${item}`, `${count}`]
  for (const [id, buyer] of buyers) yield [`u:${id}`, buyerText(buyer)]
  for (const [hold, checkout] of checkouts) yield [`c:${hold}`, checkoutText(checkout)]
  for (const key of keys) yield [`k:${key}`, '']
}

/** One of these fields; null: the stock has no such. */
export function stockField({ taken, buyers, checkouts, keys, until }: Stock, field: string): string | null {
  if (field === 'until') return until > 0 ? `${until}` : null
  const name = field.slice(2)
  switch (field[0]) {
    case 'i': {
      const count = taken.get(Number(name))
      return count === undefined ? null : `${count}`
    }
    case 'u': {
      const buyer = buyers.get(name)
      return buyer ? buyerText(buyer) : null
    }
    case 'c': {
      const checkout = checkouts.get(name)
      return checkout ? checkoutText(checkout) : null
    }
    default:
      return keys.has(name) ? '' : null
  }
}

const buyerText = ({ taken, running }: Buyer): string => `${taken} ${running}`

const checkoutText = ({ reserves, buyer, lines }: Checkout): string =>
  `${reserves ? 'reserve' : 'note'} ${buyer} ${lineWords(lines)}`
