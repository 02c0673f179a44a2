-- For how long keys are still there.
--
-- KEYS  for each: the key
-- ARGV  1 number of them
-- Returns for each the milliseconds, or -1 when it has no end, or -2 when it is not there
-- @keys 1+
-- @batch 64
-- @resend safe
-- @readonly
-- @include primitives/each

return each(1, 0, function(k)
  return redis.call('PTTL', KEYS[k + 1])
end)
