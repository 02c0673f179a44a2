-- Makes a generation that is there, and empty, the one that is being built, unless another is. From now on every item that is added goes
-- into it too.
--
-- KEYS  1 the state   2 the first chunk of the next generation that the caller knows (where there is none: the state again)
-- ARGV  1 the next generation as the caller knows it   2 the generation   3 for how long a state with nothing else in it is kept, ms
-- Returns 'building'; 'busy' when another is being built; or the state, when its next generation is not what the caller knows
-- @keys 2
-- @resend safe
-- @include primitives/each
-- @include primitives/bloom

local state = state_of(KEYS[1])
if state.building == ARGV[2] then
  return 'building'
end
if state.building ~= ARGV[1] then
  return state.text
end
if state.building ~= '' and redis.call('EXISTS', KEYS[2]) == 1 then
  return 'busy'
end
if state.current ~= '' then
  redis.call('SET', KEYS[1], state.current .. ' ' .. ARGV[2], 'KEEPTTL')
else
  redis.call('SET', KEYS[1], ' ' .. ARGV[2], 'PX', ARGV[3])
end
return 'building'
