-- Reads shards of counters.
--
-- KEYS  for each: the shard
-- ARGV  1 number of them
-- Returns for each the count in digits
-- @keys 1+
-- @batch 64
-- @resend safe
-- @readonly
-- @include primitives/each
-- @include primitives/count

return each(1, 0, function(k)
  return digits(count_of(redis.call('GET', KEYS[k + 1])))
end)
