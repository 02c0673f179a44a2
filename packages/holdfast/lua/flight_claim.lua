-- Takes the markers of values that are there and should be loaded anew, unless that was done since they were read: then they have longer to
-- live than before.
--
-- KEYS  for each: the value   the marker of who loads it
-- ARGV  1 number of them   then for each: who asks, unique to this asking   how long the marker stands, ms   for how long the value was
--       still there when it was read, ms
-- Returns for each 0 when the marker is one's own now, or for how long somebody else still has it, ms, or -1 when the value is a newer one
-- @keys 2+
-- @batch 64
-- @resend safe
-- @include primitives/each
-- @include lock/take

return each(2, 3, function(k, a)
  if redis.call('PTTL', KEYS[k + 1]) > tonumber(ARGV[a + 3]) then
    return -1
  end
  return take(KEYS[k + 2], ARGV[a + 1], ARGV[a + 2])
end)
