-- Gives back to several limits of each call, never more than was taken.
--
-- KEYS  for each call: its limits
-- ARGV  1 number of calls   then for each, as primitives/limits says: the time   the terms of its limits   what to give back to each
-- Returns for each call, as primitives/limits says: used, 0 and reset of each of its limits
-- @keys 1+
-- @batch 64
-- @resend never
-- @include primitives/each
-- @include primitives/count
-- @include primitives/clock
-- @include primitives/bucket
-- @include primitives/windows
-- @include primitives/log
-- @include primitives/limits

return refund_each({ bucket = BUCKET, fixed = WINDOWS, sliding = WINDOWS, log = LOG })
