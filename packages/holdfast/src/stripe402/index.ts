export { HoldfastStore, type HoldfastStoreOptions } from './holdfast-store.js'
export { type CreateTablesOptions, PostgresStore } from './postgres-store.js'
export type {
  ChangeOptions,
  ClientRecord,
  LedgerStore,
  ListClientsOptions,
  ListTransactionsOptions,
  Movement,
  PruneOptions,
  Stripe402Store,
  TransactionPage,
  TransactionRecord,
  TransactionType,
} from './types.js'
