export { FINDING_KINDS, type Finding, type FindingKind } from './import/findings.js'
export { type ImportOptions, type ImportProgress, type ImportReport, importStore } from './import/import.js'
export { type OpenedStore, openStore, type StoreSource } from './import/open-store.js'
export { type VerifyOptions, type VerifyProgress, type VerifyReport, verifyStore } from './import/verify.js'
export { type CreateTablesOptions, PostgresStore } from './postgres/store.js'
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
export { HoldfastStore, type HoldfastStoreOptions } from './wallets/store.js'
