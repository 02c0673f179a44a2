-- Looks at markers.
--
-- KEYS  for each: the marker
-- ARGV  1 number of them
-- Returns for each for how long it still stands, ms, or 0 when there is none
-- @keys 1+
-- @batch 64
-- @resend safe
-- @readonly
-- @include primitives/each
-- @include primitives/token
-- @include primitives/left

return each(1, 0, function(k)
  return check_token(redis.call('GET', KEYS[k + 1])) and left(KEYS[k + 1]) or 0
end)
