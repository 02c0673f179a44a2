-- Adds to shards of counters, each with its end from the first write on: that write and its TTL are one command.
--
-- KEYS  for each: the shard
-- ARGV  1 number of them   then for each: how much to add   the end of a new one: ms, or 'none'
-- Returns for each the count of the shard after it in digits, or 'over' when it would pass 2^53 - 1: then nothing is added
-- @keys 1+
-- @batch 64
-- @resend never
-- @include primitives/each
-- @include primitives/count
-- @include primitives/put

return each(1, 2, function(k, a)
  local key, by = KEYS[k + 1], tonumber(ARGV[a + 1])
  local value = redis.call('GET', key)
  local count = count_of(value)
  if count > COUNT_MAX - by then
    return 'over'
  end
  put(key, digits(count + by), value and 'keep' or ARGV[a + 2])
  return digits(count + by)
end)
