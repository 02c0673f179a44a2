import { EVENT_NAMES, type EventName, eventsOf, type FeedItem, type FeedRow, type WalletEvent } from 'holdfast'

/** Who wants to know what. */
export interface Subscription {
  readonly tenant: string
  /** Only this wallet. */
  readonly wallet: string | null
  /** Only wallets whose id begins with it; empty: all. */
  readonly walletPrefix: string
  readonly events: ReadonlySet<EventName>
  /** `balance.low`: when `available` falls below this. Null: never. */
  readonly balanceLow: number | null
}

/** Without a choice: all of them. A balance is low only for who says below what. */
export const chosenEvents = (names: readonly EventName[] = EVENT_NAMES): ReadonlySet<EventName> => new Set(names)

export function concerns({ tenant, wallet, walletPrefix }: Subscription, row: FeedRow, item: FeedItem): boolean {
  if (row.tenant !== tenant) return false
  if (wallet !== null) return item.wallet === wallet
  return walletPrefix === '' || (item.wallet?.startsWith(walletPrefix) ?? false)
}

/** What a subscriber is told of an item, in this order. */
export function toldOf(subscription: Subscription, row: FeedRow, item: FeedItem): WalletEvent[] {
  if (!concerns(subscription, row, item)) return []
  return eventsOf(row, item, subscription.balanceLow).filter(({ event }) => subscription.events.has(event))
}
