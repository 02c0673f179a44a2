-- Says what bucket_consume would, and takes nothing.
--
-- KEYS  for each call: the bucket
-- ARGV  1 number of calls   then for each, as primitives/limits says: the time   its terms   what the call would cost
-- Returns for each call, as primitives/limits says: used, wait and reset
-- @keys 1+
-- @batch 64
-- @resend safe
-- @readonly
-- @include primitives/each
-- @include primitives/count
-- @include primitives/clock
-- @include primitives/bucket
-- @include primitives/limits

return peek_each({ bucket = BUCKET })
