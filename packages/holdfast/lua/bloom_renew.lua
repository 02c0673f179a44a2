-- Keeps the generation that is being built for longer: who builds it is alive.
--
-- KEYS  1 the state   then the chunks
-- ARGV  1 number of chunks   2 the generation   3 bytes of a chunk   4 for how long, ms
-- Returns 1, or 0 when it is not being built any more, or some of it is gone
-- @keys 2+
-- @batch 512
-- @resend safe
-- @include primitives/each
-- @include primitives/bloom

local state = state_of(KEYS[1])
if state.building ~= ARGV[2] then
  return 0
end
for i = 2, #KEYS do
  if not has_chunk(KEYS[i], tonumber(ARGV[3])) then
    return 0
  end
end
for i = 2, #KEYS do
  redis.call('PEXPIRE', KEYS[i], ARGV[4])
end
if state.current == '' then
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
return 1
