-- Whether items can be in a filter.
--
-- KEYS  for each: the state   its chunk in the current generation (where there is none: the state again)
-- ARGV  1 number of them   then for each: the current generation as the caller knows it   bytes of a chunk   offsets
-- Returns for each the state, when the current generation is another one; else 1 when all its bits are set, 0 when one is not,
--         or -1 when there is no current generation or its chunk is gone
-- @keys 2+
-- @batch 64
-- @resend safe
-- @readonly
-- @include primitives/each
-- @include primitives/bloom

return each(2, 3, function(k, a)
  local state = state_of(KEYS[k + 1])
  if state.current ~= ARGV[a + 1] then
    return state.text
  end
  if state.current == '' or not has_chunk(KEYS[k + 2], tonumber(ARGV[a + 2])) then
    return -1
  end
  -- One that is not there mostly shows within two bits: a filter is half full at most.
  for offset in string.gmatch(ARGV[a + 3], '%d+') do
    if redis.call('GETBIT', KEYS[k + 2], offset) == 0 then
      return 0
    end
  end
  return 1
end)
