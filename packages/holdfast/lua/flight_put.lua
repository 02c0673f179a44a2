-- Keeps values that were loaded, if the marker is still one's own: otherwise somebody else loads by now, or what was loaded was declared
-- invalid meanwhile. Then the marker goes.
--
-- KEYS  for each: the value   the marker of who loads it
-- ARGV  1 number of them   then for each: who has loaded it   the value   for how long to keep it, ms
-- Returns for each 1, or 0 when it was not kept (or was, by the same call before)
-- @keys 2+
-- @batch 64
-- @resend safe
-- @include primitives/each

return each(2, 3, function(k, a)
  -- Something of another type is not written over.
  redis.call('STRLEN', KEYS[k + 1])
  if redis.call('GET', KEYS[k + 2]) ~= ARGV[a + 1] then
    return 0
  end
  redis.call('SET', KEYS[k + 1], ARGV[a + 2], 'PX', ARGV[a + 3])
  redis.call('DEL', KEYS[k + 2])
  return 1
end)
