-- Takes markers away, where they are still one's own: by now one may be somebody else's.
--
-- KEYS  for each: the marker
-- ARGV  1 number of them   then for each: what stands for its token
-- Returns for each 1, or 0 when it was lost (or released by the same call before)
-- @keys 1+
-- @batch 64
-- @resend safe
-- @include primitives/each
-- @include primitives/token

return each(1, 1, function(k, a)
  if check_token(redis.call('GET', KEYS[k + 1])) ~= ARGV[a + 1] then
    return 0
  end
  return redis.call('DEL', KEYS[k + 1])
end)
