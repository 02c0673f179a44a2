/**
 * The last bit of a ref tells parts of sales from wallets: whoever has a ref, from the agenda or from Postgres, knows what goes with it.
 */
export const isSale = (ref: string): boolean => Number.parseInt(ref.slice(-1), 16) % 2 === 1

export function markRef(ref: string, sale: boolean): string {
  const last = Number.parseInt(ref.slice(-1), 16)
  return ref.slice(0, -1) + (last - (last % 2) + (sale ? 1 : 0)).toString(16)
}
