-- Deletes cells that have a certain value.
--
-- KEYS  for each: the cell
-- ARGV  1 number of them   then for each: the value it must have
-- Returns for each 'deleted', or 'missing', or 'differs' and behind it what is there
-- @keys 1+
-- @batch 64
-- @resend never
-- @include primitives/each

return each(1, 1, function(k, a)
  local key = KEYS[k + 1]
  local held = redis.call('GET', key)
  if not held then
    return { 'missing' }
  end
  if held ~= ARGV[a + 1] then
    return { 'differs', held }
  end
  redis.call('UNLINK', key)
  return { 'deleted' }
end)
