export { type ErrorCode, type Facts, HoldfastError } from '../errors/index.js'
export type { CallersClient, PostgresSource } from '../postgres/index.js'
export type { RedisTarget } from '../redis/index.js'
export type { Telemetry } from '../telemetry/index.js'
export {
  Activity,
  type ActivityOptions,
  type Marked,
  type MarkedMany,
  type OfDay,
  type RetentionOptions,
} from './activity/activity.js'
export type { Bitmap, BitmapFacts } from './activity/bitmap.js'
export {
  Cohorts,
  type CohortsOptions,
  type Combination,
  type Combined,
  type CombineOptions,
} from './activity/cohorts.js'
export type { Day } from './activity/day.js'
export {
  type DenseIndex,
  estimateMemory,
  type Id,
  type IndexFacts,
  type IndexOptions,
  MappedIndex,
  type MemoryEstimate,
  OwnIndex,
  type OwnPosition,
} from './activity/dense-index.js'
export type { Progress, RetentionRow, Returned } from './activity/retention.js'
export {
  type BloomAdded,
  type BloomFill,
  BloomFilter,
  type BloomFilterOptions,
  type BloomMembership,
} from './bloom/bloom-filter.js'
export type { BloomMirror, BloomMirrorMembership, BloomMirrorOptions } from './bloom/mirror.js'
export type { BloomItems, BloomRebuilt } from './bloom/rebuild.js'
export type { BloomSize } from './bloom/size.js'
export { type BucketCall, TokenBucket, type TokenBucketOptions } from './bucket/token-bucket.js'
export { Cell, type CellOptions, type SetOptions, type SwapOptions } from './cell/cell.js'
export type { CellDelete, CellRead, CellSet, CellSetOver, CellSwap, CellTime, OneOfMany } from './cell/results.js'
export { StateCell, type StateCellOptions, type StateChange, type StateStart } from './cell/state-cell.js'
export type { Transitions } from './cell/states.js'
export type { ValueKind, ValueOf } from './cell/value.js'
export type { Context } from './context.js'
export {
  type EnvelopeChange,
  type EnvelopeCreate,
  type EnvelopeDelete,
  type EnvelopeReplace,
  Envelopes,
  type EnvelopesOptions,
  type EnvelopeUpdate,
  type UpdateOptions,
} from './envelope/envelopes.js'
export type { Envelope, Upgrades } from './envelope/format.js'
export type { Schema } from './envelope/schema.js'
export { type Exposed, type ExposedTo, Exposure, type ExposureOptions } from './exposure/exposure.js'
export {
  FLAG_ATTRIBUTE,
  FLAG_LIMITS,
  FLAG_NAME,
  FLAG_TESTS,
  type Flag,
  type FlagCondition,
  type FlagDefinition,
  type FlagInput,
  type FlagRule,
  type FlagScalar,
} from './flags/definition.js'
export {
  FeatureFlags,
  type FeatureFlagsOptions,
  type FlagAnswer,
  type FlagAuthor,
  type FlagChange,
  type FlagHistoryCall,
} from './flags/feature-flags.js'
export type { FlagAttributes, FlagReason } from './flags/judge.js'
export type { FlagChangeKind, FlagEvent, FlagState } from './flags/store.js'
export type { FlagsStanding } from './flags/watch.js'
export type { Load } from './flight/load.js'
export type { FlightTimes, SingleFlightOptions } from './flight/options.js'
export { type Flown, SingleFlight } from './flight/single-flight.js'
export type {
  IdempotencyCall,
  IdempotencyClaim,
  IdempotencyLook,
  IdempotencyOptions,
  IdempotentRun,
  IdempotentWork,
  RunCall,
} from './idempotency/contract.js'
export { Idempotency } from './idempotency/idempotency.js'
export type { KeyFacts } from './keys.js'
export { type Acquired, type HeldLease, Leases, type Used } from './lease/leases.js'
export type { AcquireOptions, LeaseRetry, LeasesOptions, LeaseTerms, TokenSource } from './lease/options.js'
export type { Lifetime } from './lifetime.js'
export type { LimitAnswer, LimitState } from './limits/limit-calls.js'
export {
  type BucketLimit,
  type FixedLimit,
  type Limit,
  Limits,
  type LimitsAnswer,
  type LimitsCall,
  type SlidingLimit,
} from './limits/limits.js'
export { Marker, type MarkerClaim, type MarkerClaimCall, type MarkerLook, type MarkerOptions } from './marker/marker.js'
export { type OtpAnswer, type OtpCall, OtpLimiter, type OtpLimiterOptions } from './otp/otp-limiter.js'
export type { PhoneOptions } from './otp/phone.js'
export type { FieldType, PlacedField } from './packed/layout.js'
export {
  type Incremented,
  type Overflow,
  PackedCounters,
  type PackedCountersOptions,
} from './packed/packed-counters.js'
export type { OlderLayout, PermissionsLayout } from './permissions/layout.js'
export { Permissions, type PermissionsChange, type PermissionsOptions } from './permissions/permissions.js'
export { Primitives, type PrimitivesOptions } from './primitives.js'
export { type KeySample, KeySampler, type KeySamplerOptions } from './sampler.js'
export { FastSequence, type FastSequenceOptions, type NumberRange } from './sequence/fast-sequence.js'
export { GaplessSequence } from './sequence/gapless-sequence.js'
export { StrictSequence, type StrictSequenceOptions } from './sequence/strict-sequence.js'
export {
  type ShardedCall,
  ShardedCounter,
  type ShardedCounterOptions,
  type ShardedRead,
} from './sharded/sharded-counter.js'
export type { ShardedTotal } from './sharded/totals.js'
export {
  type SlidingCall,
  type SlidingCount,
  type SlidingState,
  SlidingWindow,
  type SlidingWindowOptions,
} from './sliding/sliding-window.js'
export type {
  ConsumedToken,
  IssuedToken,
  OneTimeTokensOptions,
  TokenEvent,
  TokenLook,
  TokenOrder,
  TokenRefusal,
} from './token/contract.js'
export { OneTimeTokens } from './token/one-time-tokens.js'
export { FixedWindow, type FixedWindowOptions, type WindowCall, type WindowCount } from './window/fixed-window.js'
