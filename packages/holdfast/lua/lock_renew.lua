-- Has locks for longer, if they are still one's own. One that was lost is not taken again: somebody may have had it since.
--
-- KEYS  for each: the lock
-- ARGV  1 number of them   then for each: who has it   for how long from now, ms
-- Returns for each 1, or 0 when it was lost
-- @keys 1+
-- @batch 64
-- @resend safe
-- @include primitives/each

return each(1, 2, function(k, a)
  if redis.call('GET', KEYS[k + 1]) ~= ARGV[a + 1] then
    return 0
  end
  return redis.call('PEXPIRE', KEYS[k + 1], ARGV[a + 2])
end)
