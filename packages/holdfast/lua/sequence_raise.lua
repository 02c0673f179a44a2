-- Makes sequences go on after a number at the earliest.
--
-- KEYS  for each: the sequence
-- ARGV  1 number of them   then for each: the number   the end of a new one: ms, or 'none'
-- Returns for each the last number that counts as given, in digits
-- @keys 1+
-- @batch 64
-- @resend safe
-- @include primitives/each
-- @include primitives/count
-- @include primitives/put

return each(1, 2, function(k, a)
  local key, least = KEYS[k + 1], tonumber(ARGV[a + 1])
  local value = redis.call('GET', key)
  local last = count_of(value)
  if last >= least then
    return digits(last)
  end
  put(key, digits(least), value and 'keep' or ARGV[a + 2])
  return digits(least)
end)
