import { lineWords, type Stock } from '../machine/index.js'

/** The stock of a sale as it stands in Redis (`lua/wallet/stock.lua`): field, value, field, value, … */
export function stockFields({ taken, buyers, checkouts, keys, until }: Stock): string[] {
  const fields: string[] = until > 0 ? ['until', `${until}`] : []
  for (const [item, count] of taken) fields.push(`i:${item}`, `${count}`)
  for (const [buyer, { taken, running }] of buyers) fields.push(`u:${buyer}`, `${taken} ${running}`)
  for (const [hold, { reserves, buyer, lines }] of checkouts) {
    fields.push(`c:${hold}`, `${reserves ? 'reserve' : 'note'} ${buyer} ${lineWords(lines)}`)
  }
  for (const key of keys) fields.push(`k:${key}`, '')
  return fields
}
