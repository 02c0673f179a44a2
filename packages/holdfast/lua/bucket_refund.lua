-- Gives back to buckets, never more than was taken.
--
-- KEYS  for each call: the bucket
-- ARGV  1 number of calls   then for each, as primitives/limits says: the time   its terms   what to give back
-- Returns for each call, as primitives/limits says: used, 0 and reset
-- @keys 1+
-- @batch 64
-- @resend never
-- @include primitives/each
-- @include primitives/count
-- @include primitives/clock
-- @include primitives/bucket
-- @include primitives/limits

return refund_each({ bucket = BUCKET })
