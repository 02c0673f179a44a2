export { RedisStore, type RedisStoreOptions } from './redis/store.js'
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
