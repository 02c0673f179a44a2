export type { AuditOptions, BackgroundAudit, FindingsOptions, KeptFinding, RebuildOptions } from './api/audit.js'
export type { ConnectOptions, Limits } from './api/connect.js'
export { EVENT_NAMES, type EventName, eventsOf, WALLET_EVENT_NAMES, type WalletEvent } from './api/events.js'
export type { ExclusiveOptions, Lock } from './api/exclusive.js'
export type { ExplainOptions, HoldExplanation, HoldMoney, HoldStep } from './api/explain.js'
export type { ChargeOptions, ExtendOptions, Hold, HoldRef } from './api/hold.js'
export { type Health, Holdfast } from './api/holdfast.js'
export type { AtOptions, HoldState, PageOptions, PastBalance, ReadOptions } from './api/reading.js'
export type { Entry, HoldFacts, HoldReceipt, Receipt } from './api/receipt.js'
export type { SaleAttempt, SaleAttemptsOptions, SaleAttemptsPage } from './api/sale/attempts.js'
export type { CheckoutRef, CheckoutState } from './api/sale/checkout.js'
export type { EarlyRejectOptions } from './api/sale/early.js'
export { checkoutDigest, SALE_EVENT_NAMES, type SaleEventName } from './api/sale/events.js'
export type { ItemTemplate } from './api/sale/item-template.js'
export type { SoldItem } from './api/sale/lines.js'
export type { Paid, PayOptions } from './api/sale/pay.js'
export type { SaleItemState, SaleItemsOptions, SaleState, SalesOptions } from './api/sale/reading.js'
export type { Checkout, CheckoutOptions, Purchase, PurchaseOptions, Sale } from './api/sale/sale.js'
export type { OpenedSlot, SaleSchedule, SlotsOptions } from './api/sale/schedule.js'
export type { ScheduleState, SchedulesOptions } from './api/sale/schedule-reading.js'
export type { ItemsOf, ScheduleOptions } from './api/sale/schedule-terms.js'
export type { Slot } from './api/sale/slots.js'
export type { ItemOptions, SaleOptions } from './api/sale/terms.js'
export type { Session, SessionReceipt, SessionRef, TickOptions } from './api/session.js'
export type { SessionState } from './api/session-state.js'
export type { SessionStream, StreamOptions } from './api/stream.js'
export type { OperationOptions } from './api/tenant.js'
export type { MeterOptions, TimeTerms, UnitTerms } from './api/terms.js'
export type { Transfer, TransferOptions } from './api/transfer.js'
export type { WaitOptions } from './api/waiting.js'
export type { HoldOptions, OpenOptions, Wallet, WalletState, WalletsOptions } from './api/wallet.js'
export {
  type AuditLimits,
  type AuditProgress,
  type AuditReport,
  CAUSES,
  type Cause,
  type Finding,
  type FindingValue,
  type RebuildProgress,
  type RebuildReport,
} from './audit/index.js'
export type { Durability, EngineOptions } from './engine/index.js'
export { ERRORS, type ErrorCode, type Facts, HoldfastError } from './errors/index.js'
export { type FeedHead, type FeedItem, type FeedRow, type Notice, PostgresFeed } from './journal/index.js'
export {
  checkMigrated,
  checkServer,
  inspectServer,
  type MigrationReport,
  migrate,
  Postgres,
  PostgresError,
  type PostgresOptions,
  type PostgresOutcome,
  type PostgresSource,
  readSettings,
  readStop,
  type ServerCheck,
  type ServerFinding,
} from './postgres/index.js'
export type { LostEntry, ReconcileOptions, ReconcileReport, WalletAhead } from './reconcile/index.js'
export { inspectRedis, type RedisCheck, RedisConnection, type RedisTarget, type RedisUse } from './redis/index.js'
export { METRICS, type MetricName, type Telemetry } from './telemetry/index.js'
