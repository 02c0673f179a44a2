-- Says what limits_consume would, and takes nothing.
--
-- KEYS  for each call: its limits
-- ARGV  1 number of calls   then for each, as primitives/limits says: the time   the terms of its limits   what it would cost in each
-- Returns for each call, as primitives/limits says: used, wait and reset of each of its limits
-- @keys 1+
-- @batch 64
-- @resend safe
-- @readonly
-- @include primitives/each
-- @include primitives/count
-- @include primitives/clock
-- @include primitives/bucket
-- @include primitives/windows
-- @include primitives/log
-- @include primitives/limits

return peek_each({ bucket = BUCKET, fixed = WINDOWS, sliding = WINDOWS, log = LOG })
