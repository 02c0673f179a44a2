-- The same portion of several bitmaps.
--
-- KEYS  1 the index   2… the bitmaps
-- ARGV  1 number of bitmaps   2 the generation of the index   3 the first byte   4 the last byte
-- Returns {bytes of the longest, the portion of each…}, or {'~', the generation that the index has}
-- @keys 2+
-- @batch 31
-- @resend safe
-- @readonly
-- @include primitives/each
-- @include activity/index

local instead = other_generation(KEYS[1], ARGV[2])
if instead then
  return instead
end
local answer = { 0 }
for i = 2, #KEYS do
  answer[1] = math.max(answer[1], redis.call('STRLEN', KEYS[i]))
  answer[i] = redis.call('GETRANGE', KEYS[i], ARGV[3], ARGV[4])
end
return answer
