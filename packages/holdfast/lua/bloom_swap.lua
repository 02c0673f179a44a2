-- Lets the generation that was built take the place of the current one, which gets an end.
--
-- KEYS  1 the state   then the chunks of the one that was built   then those of the current one
-- ARGV  1 number of all chunks   2 the current generation as the caller knows it   3 the one that was built   4 number of its chunks
--       5 bytes of one of them   6 when it ends, ms since 1970, or 0   7 for how long the old one is kept, ms
-- Returns 'swapped'; 'expired' when it would have ended already; 'lost' when it is not being built any more, or some of it is gone;
--         or the state, when the current generation is not what the caller knows
-- @keys 2+
-- @batch 1024
-- @resend safe
-- @include primitives/each
-- @include primitives/bloom
-- @include primitives/bloom_keep

local state = state_of(KEYS[1])
if state.current == ARGV[3] then
  return 'swapped'
end
if is_past(ARGV[6]) then
  return 'expired'
end
if state.building ~= ARGV[3] then
  return 'lost'
end
if state.current ~= ARGV[2] then
  return state.text
end
local last = 1 + tonumber(ARGV[4])
if not has_all(2, last, tonumber(ARGV[5])) then
  return 'lost'
end
keep(2, last, ARGV[6])
for i = last + 1, #KEYS do
  redis.call('PEXPIRE', KEYS[i], ARGV[7])
end
write_state(KEYS[1], state.building .. ' ', ARGV[6])
return 'swapped'
