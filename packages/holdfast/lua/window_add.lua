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
  local key, by = KEYS[k + 1], ARGV[a + 1]
  local value = redis.call('GET', key)
  if not value then
    redis.call('SET', key, by, 'PX', ARGV[a + 2])
    return by
  end
  -- INCRBY reads no zero in front of others.
  if #value > 1 and string.byte(value) == 48 then
    damaged()
  end
  if count_of(value) > COUNT_MAX - tonumber(by) then
    return 'over'
  end
  -- A quarter cheaper than to write the sum, and the end stays as it is.
  return digits(redis.call('INCRBY', key, by))
end)
