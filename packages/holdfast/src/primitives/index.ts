export type { CallersClient } from '../postgres/index.js'
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
export type { Context } from './context.js'
export { type Exposed, type ExposedTo, Exposure, type ExposureOptions } from './exposure/exposure.js'
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
export { Marker, type MarkerClaim, type MarkerClaimCall, type MarkerLook, type MarkerOptions } from './marker/marker.js'
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
