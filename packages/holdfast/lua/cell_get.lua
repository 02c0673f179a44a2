-- Reads cells.
--
-- KEYS  for each: the cell
-- ARGV  1 number of them
-- Returns for each its value, or nothing when it is missing
-- @keys 1+
-- @batch 64
-- @resend safe
-- @readonly
-- @include primitives/each

return each(1, 0, function(k)
  return redis.call('GET', KEYS[k + 1])
end)
