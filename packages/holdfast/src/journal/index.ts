export {
  type AttemptKind,
  type AttemptOutcome,
  type AttemptPlace,
  type AttemptRow,
  PostgresAttempts,
} from './attempts.js'
export * from './audits.js'
export { type FeedHead, type FeedItem, type FeedRow, type Notice, PostgresFeed, type Relayed } from './feed.js'
export { type HoldReading, type HoldStatus, holdAfter } from './hold-reading.js'
export { type Begun, type Intent, type Intents, type OpenIntent, PostgresIntents } from './intents.js'
export { PostgresAudits } from './postgres-audits.js'
export { PostgresJournal } from './postgres-journal.js'
export { type BalanceReading, type FoundHold, JournalReader, type MadeHold, type WalletHead } from './reader.js'
export { type Cut, cutRuns, deadlineOf, halve, limitAfter, type Run, statusAfter } from './runs.js'
export { type BucketStanding, PostgresSales, type SaleItem, type SaleRow, type SaleTerms } from './sales.js'
export { type Ask, prove, stop } from './standing.js'
export { isStorable, isStorableEntry } from './storable.js'
export * from './types.js'
export { APPEND_ROUNDS_MAX, type Inspection, type Judgement, judgeBehindBad, judgeRun } from './verdicts.js'
