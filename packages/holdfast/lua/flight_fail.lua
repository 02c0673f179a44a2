-- Tells that values could not be loaded, if the marker is still one's own: for a while nobody tries.
--
-- KEYS  for each: the marker of who loads it
-- ARGV  1 number of them   then for each: who could not   for how long nobody tries, ms
-- Returns for each 1, or 0 when the marker was not one's own any more
-- @keys 1+
-- @batch 64
-- @resend safe
-- @include primitives/each

return each(1, 2, function(k, a)
  if redis.call('GET', KEYS[k + 1]) ~= ARGV[a + 1] then
    return 0
  end
  redis.call('SET', KEYS[k + 1], '!', 'PX', ARGV[a + 2])
  return 1
end)
