import { lineWords, type Stock } from '../machine/index.js'

/** The stock of a sale as it stands in Redis (`lua/wallet/stock.lua`): field, value, field, value, … */
export function stockFields({ taken, buyers, checkouts }: Stock): string[] {
  const fields: string[] = []
  for (const [item, count] of taken) fields.push(`i:${item}`, `${count}`)
  for (const [buyer, { taken, running }] of buyers) fields.push(`u:${buyer}`, `${taken} ${running}`)
  for (const [hold, { reserves, buyer, lines }] of checkouts) {
    fields.push(`c:${hold}`, `${reserves ? 'reserve' : 'note'} ${buyer} ${lineWords(lines)}`)
  }
  return fields
}
