-- Forgets packed fields, whatever stands there.
--
-- KEYS  for each: the fields
-- ARGV  1 number of them
-- Returns for each 1, or 0 when there were none
-- @keys 1+
-- @batch 64
-- @resend safe
-- @include primitives/each

return each(1, 0, function(k)
  return redis.call('UNLINK', KEYS[k + 1])
end)
