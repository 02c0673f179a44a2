-- Changes cells from a value to another, if it is that one.
--
-- KEYS  for each: the cell
-- ARGV  1 number of them   then for each: the value it must have   the next   its end: ms, 'keep' or 'none'
-- Returns for each 'swapped', or 'missing', or 'differs' and behind it what is there
-- @keys 1+
-- @batch 64
-- @resend never
-- @include primitives/each
-- @include primitives/put

return each(1, 3, function(k, a)
  local key = KEYS[k + 1]
  local held = redis.call('GET', key)
  if not held then
    return { 'missing' }
  end
  if held ~= ARGV[a + 1] then
    return { 'differs', held }
  end
  put(key, ARGV[a + 2], ARGV[a + 3])
  return { 'swapped' }
end)
