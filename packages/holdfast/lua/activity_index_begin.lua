-- Begins an index, if there is none.
--
-- KEYS  1 the index
-- ARGV  1 its generation, which nobody has proposed before
-- Returns the generation that it has
-- @keys 1
-- @resend never
-- @include primitives/each

local current = redis.call('HGET', KEYS[1], 'generation')
if current then
  return current
end
if redis.call('EXISTS', KEYS[1]) == 1 then
  damaged()
end
redis.call('HSET', KEYS[1], 'generation', ARGV[1], 'next', '0')
return ARGV[1]
