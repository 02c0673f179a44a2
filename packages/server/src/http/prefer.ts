import { HoldfastError } from 'holdfast'

const DURABILITY = /^durability *(?:= *"?([^"]*)"?)?$/i

/** `Prefer: durability=memory`. Preferences that we don't know are none of our business (RFC 7240). */
export function preferredDurability(prefer: string | undefined): 'ledger' | 'memory' | undefined {
  if (prefer === undefined) return undefined
  for (const preference of prefer.split(',')) {
    const [named = ''] = preference.split(';')
    const match = DURABILITY.exec(named.trim())
    if (!match) continue
    const value = match[1]?.trim().toLowerCase()
    if (value === 'ledger' || value === 'memory') return value
    throw new HoldfastError('invalid_argument', 'header.prefer: expected durability=ledger or durability=memory', {
      argument: 'header.prefer',
    })
  }
  return undefined
}
