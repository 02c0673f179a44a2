-- Takes wallets from the agenda whose time has come, for one who will tend them. They stay on it, a little later, so that others
-- leave them alone for now and find them again if the one who took them dies.
--
-- KEYS  1 the shard's agenda
-- ARGV  1 how many at most   2 for how long they are taken, ms
-- Returns { name, … }; also where the server is full
-- @keys 1
-- @resend safe
-- @include wallet/server
-- @include wallet/room

local clock = server_clock()
local names = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', clock), 'LIMIT', 0, ARGV[1])
local refusal = #names > 0 and begin_writing(KEYS[1])
if refusal then
  return refusal
end
for i = 1, #names do
  redis.call('ZADD', KEYS[1], string.format('%.0f', clock + tonumber(ARGV[2])), names[i])
end
return names
