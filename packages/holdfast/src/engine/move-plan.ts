import type { Move } from '../machine/index.js'

/** What a bucket of a sale has too little of, while others may have it. */
export interface Wanted {
  /** 0: no item, but how many can be checked out in all. */
  readonly item: number
  /** So many it must have. */
  readonly quantity: number
  /** How many of the item each bucket began with. */
  readonly shares: readonly number[]
}

/** What every bucket has: of the wanted, and in all. */
export interface Stocktaking {
  readonly wanted: Wanted
  readonly left: readonly number[]
}

export interface PlannedMove {
  readonly source: number
  readonly move: Move
}

/**
 * Who gives what to the target: those that have most, and half of what they have where that is more than what is missing. So a bucket that runs
 * dry is filled in a few moves, and two of them do not pass single pieces to and fro. With an item comes as much of the total as the giver
 * has, because an item that nobody may check out helps nobody. What all of them together do not have is not moved at all.
 */
export function planMoves(takings: readonly Stocktaking[], inAll: readonly number[], target: number): PlannedMove[] {
  const spare = [...inAll]
  const moves = new Map<number, Move>()
  const moveOf = (source: number): Move => {
    const move = moves.get(source) ?? { total: 0, lines: [] }
    moves.set(source, move)
    return move
  }
  for (const { wanted, left } of byItem(takings)) {
    for (const { source, quantity } of givers(left, wanted.quantity, target)) {
      const total = Math.min(quantity, spare[source] as number)
      const move = moveOf(source)
      move.lines.push({ item: wanted.item, quantity, share: wanted.shares[source] as number })
      move.total += total
      spare[source] = (spare[source] as number) - total
      spare[target] = (spare[target] as number) + total
    }
  }
  const most = Math.max(0, ...takings.map(({ wanted }) => (wanted.item === 0 ? wanted.quantity : 0)))
  for (const { source, quantity } of givers(spare, most, target)) moveOf(source).total += quantity
  return [...moves].map(([source, move]) => ({ source, move }))
}

export const sumOf = (left: readonly number[]): number => left.reduce((sum, one) => sum + one, 0)

/** Each item once, by who wants most of it. */
function byItem(takings: readonly Stocktaking[]): Stocktaking[] {
  const items = new Map<number, Stocktaking>()
  for (const taking of takings) {
    const { item, quantity } = taking.wanted
    const known = items.get(item)
    if (item !== 0 && (!known || known.wanted.quantity < quantity)) items.set(item, taking)
  }
  return [...items.values()]
}

function givers(left: readonly number[], quantity: number, target: number): { source: number; quantity: number }[] {
  let missing = quantity - (left[target] as number)
  if (missing <= 0 || sumOf(left) < quantity) return []
  const sources = left.map((_, bucket) => bucket).filter((bucket) => bucket !== target && (left[bucket] as number) > 0)
  sources.sort((a, b) => (left[b] as number) - (left[a] as number))
  const given: { source: number; quantity: number }[] = []
  for (const source of sources) {
    if (missing <= 0) break
    const has = left[source] as number
    const gives = Math.min(has, Math.max(missing, Math.ceil(has / 2)))
    given.push({ source, quantity: gives })
    missing -= gives
  }
  return given
}
