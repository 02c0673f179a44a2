-- What a bitmap is like.
--
-- KEYS  1 the index   2 the bitmap
-- ARGV  1 the generation of the index
-- Returns {first position that is marked or -1, first that is not, its bytes, its bytes in memory, ms to its end or -1}, or {} when there is
--         none, or {'~', the generation that the index has}
-- @keys 2
-- @resend safe
-- @readonly
-- @include primitives/each
-- @include activity/index

local instead = other_generation(KEYS[1], ARGV[1])
if instead then
  return instead
end
local bitmap = KEYS[2]
if redis.call('EXISTS', bitmap) == 0 then
  return {}
end
local bytes = redis.call('STRLEN', bitmap)
-- With nothing in it there is nothing to search, and Redis says -1.
local clear = bytes == 0 and 0 or redis.call('BITPOS', bitmap, 0)
local memory = redis.call('MEMORY', 'USAGE', bitmap)
return { redis.call('BITPOS', bitmap, 1), clear, bytes, memory, redis.call('PTTL', bitmap) }
