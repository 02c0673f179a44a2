-- Adds items to the generation that is being built, and to no other.
--
-- KEYS  for each: the state   its chunk in the next generation
-- ARGV  1 number of them   then for each: the next generation   bytes of a chunk   offsets
-- Returns for each the number that were new in its chunk for sure when it was new itself, 0 when all its bits had been set, or -1 when
--         this generation is not being built any more
-- @keys 2+
-- @batch 64
-- @resend safe
-- @include primitives/each
-- @include primitives/bloom
-- @include primitives/bloom_put

return each(2, 3, function(k, a)
  local bytes = tonumber(ARGV[a + 2])
  if state_of(KEYS[k + 1]).building ~= ARGV[a + 1] or not has_chunk(KEYS[k + 2], bytes) then
    return -1
  end
  return put(KEYS[k + 2], bytes, ARGV[a + 3])
end)
