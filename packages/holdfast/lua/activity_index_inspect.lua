-- What an index is like.
--
-- KEYS  1 the index
-- ARGV  none
-- Returns {its generation, how many positions it has given out, its bytes in memory}, or {} when there is none
-- @keys 1
-- @resend safe
-- @readonly
-- @include primitives/each
-- @include primitives/count

local found = redis.call('HMGET', KEYS[1], 'generation', 'next')
if redis.call('EXISTS', KEYS[1]) == 0 then
  return {}
end
if not found[1] or not found[2] then
  damaged()
end
return { found[1], count_of(found[2]), redis.call('MEMORY', 'USAGE', KEYS[1]) }
