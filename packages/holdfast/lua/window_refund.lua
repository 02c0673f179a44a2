-- Takes back from counters of a window, never below nothing. Where there is no counter none is made.
--
-- KEYS  for each: the counter
-- ARGV  1 number of them   then for each: how much to take back
-- Returns for each the count after it in digits
-- @keys 1+
-- @batch 64
-- @resend never
-- @include primitives/each
-- @include primitives/count

return each(1, 1, function(k, a)
  local value = redis.call('GET', KEYS[k + 1])
  local count = math.max(0, count_of(value) - tonumber(ARGV[a + 1]))
  if value then
    redis.call('SET', KEYS[k + 1], digits(count), 'KEEPTTL')
  end
  return digits(count)
end)
