-- Counts what is marked in a portion of a bitmap: a server that counts serves nobody else.
--
-- KEYS  1 the index   2 the bitmap
-- ARGV  1 the generation of the index   2 its first byte   3 its last byte
-- Returns {how many, bytes of the whole bitmap}, or {-1, 0} when there is none, or {'~', the generation that the index has}
-- @keys 2
-- @resend safe
-- @readonly
-- @include primitives/each
-- @include activity/index

local instead = other_generation(KEYS[1], ARGV[1])
if instead then
  return instead
end
if redis.call('EXISTS', KEYS[2]) == 0 then
  return { -1, 0 }
end
return { redis.call('BITCOUNT', KEYS[2], ARGV[2], ARGV[3]), redis.call('STRLEN', KEYS[2]) }
