-- Makes a generation that is there, and empty, the current one, unless there is one.
--
-- KEYS  1 the state   then the chunks
-- ARGV  1 number of chunks   2 the generation   3 bytes of a chunk   4 when it ends, ms since 1970, or 0
-- Returns 'begun', 'exists', 'lost' when its chunks are gone, or 'expired' when it would have ended already
-- @keys 2+
-- @batch 512
-- @resend safe
-- @include primitives/each
-- @include primitives/bloom
-- @include primitives/bloom_keep

local state = state_of(KEYS[1])
if state.current == ARGV[2] then
  return 'begun'
end
if state.current ~= '' then
  return 'exists'
end
if is_past(ARGV[4]) then
  return 'expired'
end
if not has_all(2, #KEYS, tonumber(ARGV[3])) then
  return 'lost'
end
keep(2, #KEYS, ARGV[4])
write_state(KEYS[1], ARGV[2] .. ' ' .. state.building, ARGV[4])
return 'begun'
