-- Takes back from shards of counters as much as is there, up to a most. Where there is no shard none is made.
--
-- KEYS  for each: the shard
-- ARGV  1 number of them   then for each: the most to take back
-- Returns for each how much was taken back in digits
-- @keys 1+
-- @batch 64
-- @resend never
-- @include primitives/each
-- @include primitives/count

return each(1, 1, function(k, a)
  local count = count_of(redis.call('GET', KEYS[k + 1]))
  local taken = math.min(count, tonumber(ARGV[a + 1]))
  if taken > 0 then
    redis.call('SET', KEYS[k + 1], digits(count - taken), 'KEEPTTL')
  end
  return digits(taken)
end)
