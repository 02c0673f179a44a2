-- Forgets the limits of a call, whatever stands there.
--
-- KEYS  for each call: its limits
-- ARGV  1 number of calls
-- Returns for each call how many of them there were
-- @keys 1+
-- @batch 64
-- @resend safe
-- @include primitives/each

local keys_each = #KEYS / tonumber(ARGV[1])

return each(keys_each, 0, function(k)
  return redis.call('UNLINK', unpack(KEYS, k + 1, k + keys_each))
end)
