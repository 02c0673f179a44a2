-- Takes from sliding windows what calls cost, where that is let pass.
--
-- KEYS  for each call: the sliding window
-- ARGV  1 number of calls   then for each, as primitives/limits says: the time   its terms   what the call costs
-- Returns for each call, as primitives/limits says: used, wait and reset
-- @keys 1+
-- @batch 64
-- @resend never
-- @include primitives/each
-- @include primitives/count
-- @include primitives/clock
-- @include primitives/windows
-- @include primitives/log
-- @include primitives/limits

return consume_each({ sliding = WINDOWS, log = LOG })
