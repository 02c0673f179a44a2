import { lineWords, type Stock } from '../machine/index.js'

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
  for (const [buyer, { taken, running }] of buyers) yield [`u:${buyer}`, `${taken} ${running}`]
  for (const [hold, { reserves, buyer, lines }] of checkouts) {
    yield [`c:${hold}`, `${reserves ? 'reserve' : 'note'} ${buyer} ${lineWords(lines)}`]
  }
  for (const key of keys) yield [`k:${key}`, '']
}
