-- Which positions ids have.
--
-- KEYS  for each: the index
-- ARGV  1 number of them   then for each: 16 bytes of an id
-- Returns for each its position in digits, or '' when it has none
-- @keys 1+
-- @batch 64
-- @resend safe
-- @readonly
-- @include primitives/each
-- @include primitives/count

return each(1, 1, function(k, a)
  local position = redis.call('HGET', KEYS[k + 1], ARGV[a + 1])
  return position and digits(count_of(position)) or ''
end)
