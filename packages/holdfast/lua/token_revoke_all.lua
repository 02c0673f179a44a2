-- Ends all tokens of subjects that were not used, by the end of their generation.
--
-- KEYS  for each: the generation of a subject
-- ARGV  1 number of them
-- Returns for each 1, or 0 when there was none
-- @keys 1+
-- @batch 64
-- @resend safe
-- @include primitives/each

return each(1, 0, function(k)
  return redis.call('UNLINK', KEYS[k + 1])
end)
