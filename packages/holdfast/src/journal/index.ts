export {
  type AttemptKind,
  type AttemptOutcome,
  type AttemptPlace,
  type AttemptRow,
  type KeptAttempt,
  PostgresAttempts,
} from './attempts.js'
export * from './audits.js'
export type { EpochStep } from './epochs.js'
export {
  type FeedHead,
  type FeedItem,
  type FeedRow,
  type FeedSale,
  type Notice,
  PostgresFeed,
  type Relayed,
} from './feed.js'
export { type HoldReading, type HoldStatus, holdAfter } from './hold-reading.js'
export {
  type Begun,
  type Intent,
  type Intents,
  type Moving,
  type Numbers,
  type Open,
  type OpenIntent,
  PostgresIntents,
  type TransferIntents,
  type Written,
} from './intents.js'
export {
  type BegunPayment,
  type PaymentIntent,
  type PaymentIntents,
  PostgresPayments,
  paymentName,
} from './payments.js'
export { PostgresAudits } from './postgres-audits.js'
export { PostgresJournal } from './postgres-journal.js'
export { type BalanceReading, type FoundHold, JournalReader, type MadeHold, type WalletHead } from './reader.js'
export { type Cut, cutRuns, deadlineOf, halve, limitAfter, type Run, statusAfter } from './runs.js'
export { type BucketStanding, PostgresSales, type SaleItem, type SaleRow, type SaleTerms } from './sales.js'
export {
  type ItemTemplateRow,
  type ListedItem,
  type OpenSlot,
  PostgresSchedules,
  type ScheduleRow,
  type ScheduleTemplate,
  type SlotRow,
} from './schedules.js'
export { PostgresSold } from './sold.js'
export { type Ask, prove, stop } from './standing.js'
export { JournalEnds, StockUnreadable } from './stock.js'
export { isStorable, isStorableEntry } from './storable.js'
export * from './types.js'
export {
  APPEND_ROUNDS_MAX,
  type Inspection,
  type Judgement,
  judgeBehindBad,
  judgeLocked,
  judgeRun,
} from './verdicts.js'
