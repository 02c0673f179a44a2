-- Gives the next numbers of sequences.
--
-- KEYS  for each: the sequence
-- ARGV  1 number of them   then for each: how many numbers   the end of a new one: ms, or 'none'
-- Returns for each the last of its numbers in digits, or 'over' when it would pass 2^53 - 1: then none is given
-- Sent twice it leaves numbers out, which is no harm: sequences have gaps.
-- @keys 1+
-- @batch 64
-- @resend safe
-- @include primitives/each
-- @include primitives/count
-- @include primitives/put

return each(1, 2, function(k, a)
  local key, many = KEYS[k + 1], tonumber(ARGV[a + 1])
  local value = redis.call('GET', key)
  local last = count_of(value)
  if last > COUNT_MAX - many then
    return 'over'
  end
  put(key, digits(last + many), value and 'keep' or ARGV[a + 2])
  return digits(last + many)
end)
