-- Forgets generations: all of a filter, or the one that was being built.
--
-- KEYS  1 the state   then the chunks of what goes
-- ARGV  1 number of chunks   2 the state as the caller knows it   3 what is left of it, or nothing
-- Returns 1; 0 when that is all there is already; or the state, when it is another one: then nothing was done
-- @keys 1+
-- @batch 1024
-- @resend safe
-- @include primitives/each
-- @include primitives/bloom

local state = state_of(KEYS[1])
if state.text == ARGV[3] then
  return 0
end
if state.text ~= ARGV[2] then
  return state.text
end
for i = 2, #KEYS do
  redis.call('UNLINK', KEYS[i])
end
if ARGV[3] == ' ' then
  redis.call('UNLINK', KEYS[1])
else
  redis.call('SET', KEYS[1], ARGV[3], 'KEEPTTL')
end
return 1
