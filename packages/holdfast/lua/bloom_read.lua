-- Chunks as they are.
--
-- KEYS  chunks of a generation
-- ARGV  1 number of them   2 bytes of a chunk
-- Returns for each chunk its bits and its mark, nothing when it is gone
-- @keys 1+
-- @batch 4
-- @resend safe
-- @readonly
-- @include primitives/each
-- @include primitives/bloom

local chunks = {}
for i = 1, #KEYS do
  chunks[i] = has_chunk(KEYS[i], tonumber(ARGV[2])) and redis.call('GET', KEYS[i]) or ''
end
return chunks
