import {
  type EventName,
  eventsOf,
  type FeedItem,
  type FeedRow,
  SALE_EVENT_NAMES,
  WALLET_EVENT_NAMES,
  type WalletEvent,
} from 'holdfast'

/** Who wants to know what. */
export interface Subscription {
  readonly tenant: string
  /** Only this wallet. */
  readonly wallet: string | null
  /** Only this sale. */
  readonly sale: string | null
  /** Only wallets whose id begins with it, and no sales; empty: all. */
  readonly walletPrefix: string
  readonly events: ReadonlySet<EventName>
  /** `balance.low`: when `available` falls below this. Null: never. */
  readonly balanceLow: number | null
}

/**
 * Without a choice: all that is told of wallets. What is told of sales is for who names it: whoever followed wallets before there were sales
 * is not to be told of a hundred checkouts a second. A balance is low only for who says below what.
 */
export const chosenEvents = (names: readonly EventName[] = WALLET_EVENT_NAMES): ReadonlySet<EventName> => new Set(names)

/** Whether the feed has to be read for sales on its behalf. */
export function wantsSales({ wallet, sale, walletPrefix, events }: Subscription): boolean {
  if (sale !== null) return true
  return wallet === null && walletPrefix === '' && SALE_EVENT_NAMES.some((name) => events.has(name))
}

export function concerns({ tenant, wallet, sale, walletPrefix }: Subscription, row: FeedRow, item: FeedItem): boolean {
  if (row.tenant !== tenant) return false
  if (sale !== null) return item.sale?.id === sale
  if (wallet !== null) return item.wallet === wallet
  return walletPrefix === '' || (item.wallet?.startsWith(walletPrefix) ?? false)
}

/** What a subscriber is told of an item, in this order. */
export function toldOf(subscription: Subscription, row: FeedRow, item: FeedItem): WalletEvent[] {
  if (!concerns(subscription, row, item)) return []
  return eventsOf(row, item, subscription.balanceLow).filter(({ event }) => subscription.events.has(event))
}
