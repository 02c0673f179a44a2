-- Adds items to the generation of a filter that answers, and to the one that is being built, so that none is missing in it when it
-- takes over.
--
-- KEYS  for each: the state   its chunk in the current generation   its chunk in the next one (where there is none: the state again)
-- ARGV  1 number of them   then for each: the state as the caller knows it   bytes of a chunk   offsets   both for the next one
-- Returns for each the state, when it is another one: then nothing was done; else the number that were new in its chunk for sure when it
--         was new itself, 0 when all its bits had been set, or -1 when there is no current generation or its chunk is gone
-- @keys 3+
-- @batch 64
-- @resend safe
-- @include primitives/each
-- @include primitives/bloom
-- @include primitives/bloom_put

return each(3, 5, function(k, a)
  local key = KEYS[k + 1]
  local state = state_of(key)
  if state.text ~= ARGV[a + 1] then
    return state.text
  end
  local bytes, next_bytes = tonumber(ARGV[a + 2]), tonumber(ARGV[a + 4])
  local has_current = state.current ~= '' and has_chunk(KEYS[k + 2], bytes)
  if state.building ~= '' then
    if has_chunk(KEYS[k + 3], next_bytes) then
      put(KEYS[k + 3], next_bytes, ARGV[a + 5])
    else
      -- Whoever built it is gone, and it will never be whole.
      states[key] = split(state.current .. ' ')
      if state.current == '' then
        redis.call('UNLINK', key)
      else
        redis.call('SET', key, states[key].text, 'KEEPTTL')
      end
    end
  end
  if not has_current then
    return -1
  end
  return put(KEYS[k + 2], bytes, ARGV[a + 3])
end)
