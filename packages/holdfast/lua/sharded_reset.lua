-- Forgets shards of counters, whatever stands there.
--
-- KEYS  for each: the shard
-- ARGV  1 number of them
-- Returns for each 1, or 0 when there was none
-- @keys 1+
-- @batch 64
-- @resend safe
-- @include primitives/each

return each(1, 0, function(k)
  return redis.call('UNLINK', KEYS[k + 1])
end)
