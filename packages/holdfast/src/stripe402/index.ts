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
