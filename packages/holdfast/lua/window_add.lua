-- Adds to counters of a window, each with its end from the first write on: that write and its TTL are one command.
--
-- KEYS  for each: the counter
-- ARGV  1 number of them   then for each: how much to add   for how long to keep a new one, ms
-- Returns for each the count after it in digits, or 'over' when it would pass 2^53 - 1: then nothing is added
-- @keys 1+
-- @batch 64
-- @resend never
-- @include primitives/each
-- @include primitives/count

return each(1, 2, function(k, a)
  local key, by = KEYS[k + 1], tonumber(ARGV[a + 1])
  local value = redis.call('GET', key)
  local count = count_of(value)
  if count > COUNT_MAX - by then
    return 'over'
  end
  if value then
    redis.call('SET', key, digits(count + by), 'KEEPTTL')
  else
    redis.call('SET', key, digits(by), 'PX', ARGV[a + 2])
  end
  return digits(count + by)
end)
