-- How many bits of chunks are set.
--
-- KEYS  chunks of a generation
-- ARGV  1 number of them   2 bytes of a chunk
-- Returns for each chunk the number, or -1 when it is gone
-- @keys 1+
-- @batch 32
-- @resend safe
-- @readonly
-- @include primitives/each
-- @include primitives/bloom

local bytes = tonumber(ARGV[2])
local counts = {}
for i = 1, #KEYS do
  counts[i] = has_chunk(KEYS[i], bytes) and redis.call('BITCOUNT', KEYS[i], 0, bytes - 1) or -1
end
return counts
