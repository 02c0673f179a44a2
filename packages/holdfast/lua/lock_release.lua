-- Gives locks back, if they are still one's own: by now they may be somebody else's.
--
-- KEYS  for each: the lock
-- ARGV  1 number of them   then for each: who has it
-- Returns for each 1, or 0 when it was lost (or given back by the same call before)
-- @keys 1+
-- @batch 64
-- @resend safe
-- @include primitives/each

return each(1, 1, function(k, a)
  if redis.call('GET', KEYS[k + 1]) ~= ARGV[a + 1] then
    return 0
  end
  return redis.call('DEL', KEYS[k + 1])
end)
