-- Forgets values, and the markers of those who load them: what they load now is not kept.
--
-- KEYS  for each: the value   the marker of who loads it
-- ARGV  1 number of them
-- Returns for each 1, or 0 when there was no value
-- @keys 2+
-- @batch 64
-- @resend safe
-- @include primitives/each

return each(2, 0, function(k)
  redis.call('DEL', KEYS[k + 2])
  return redis.call('UNLINK', KEYS[k + 1])
end)
