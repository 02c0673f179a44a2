-- Forgets flags of subjects, whatever stands there.
--
-- KEYS  for each: the flags   by the older layout, if there is one
-- ARGV  1 number of them
-- Returns for each how many keys there were
-- @keys 1+
-- @batch 64
-- @resend safe
-- @include primitives/each

local keys_each = #KEYS / tonumber(ARGV[1])

return each(keys_each, 0, function(k)
  return redis.call('UNLINK', unpack(KEYS, k + 1, k + keys_each))
end)
