import { lineWords, type Stock } from '../machine/index.js'

/** The stock of a sale as it stands in Redis (`lua/wallet/stock.lua`): field, value, field, value, … */
export function stockFields({ taken, buyers, checkouts, until }: Stock): string[] {
  const fields: string[] = until > 0 ? ['until', `${until}`] : []
  for (const [item, count] of taken) fields.push(`i:${item}`, `${count}`)
  for (const [buyer, { taken, running }] of buyers) fields.push(`u:${buyer}`, `${taken} ${running}`)
  for (const [hold, { reserves, buyer, lines }] of checkouts) {
    fields.push(`c:${hold}`, `${reserves ? 'reserve' : 'note'} ${buyer} ${lineWords(lines)}`)
  }
  return fields
}
