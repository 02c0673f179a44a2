-- The marks of chunks: one whose mark has not changed since one looked need not be read again.
--
-- KEYS  1 the state   then chunks of the current generation
-- ARGV  1 number of chunks   2 the current generation as the caller knows it   3 bytes of a chunk
-- Returns for each chunk its 8 bytes, none when it is gone; or the state, when the current generation is another one
-- @keys 1+
-- @batch 512
-- @resend safe
-- @readonly
-- @include primitives/each
-- @include primitives/bloom

local state = state_of(KEYS[1])
if state.current ~= ARGV[2] then
  return state.text
end
local bytes = tonumber(ARGV[3])
local marks = {}
for i = 2, #KEYS do
  marks[i - 1] = has_chunk(KEYS[i], bytes) and redis.call('GETRANGE', KEYS[i], bytes, -1) or ''
end
return marks
