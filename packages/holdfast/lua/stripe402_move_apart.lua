-- Changes a balance and keeps the transaction that says so beside it, both or neither. Where the transaction and the index lie in other
-- slots of a Cluster: they are written next, by whoever comes by.
--
-- KEYS  1 the client   2 what its moves remember   3 what is to be filed
-- ARGV  1 id of the transaction   2 the change: +n or -n   3 what to file   4 updatedAt   5 '1': a transaction of this id is recorded
-- Returns { 'moved' | 'again', balance after, what is still to be filed of it or '' }, { 'recorded', balance now or why there is none },
--         { 'busy', '', what is to be done with a transaction of this id first }, or { why it is refused }: 'unknown' 'short' 'over' 'conflict' 'type' 'balance' 'memory' 'pending'
-- @keys 3
-- @resend safe
-- @include stripe402/move

local pending = redis.pcall('HGET', KEYS[3], ARGV[1])
if is_error(pending) then
  return is_wrong_type(pending) and { 'pending' } or pending
end
local status, written = decide_move(KEYS[1], KEYS[2], ARGV[1], ARGV[2])
if status == 'again' then
  return { status, written, pending or '' }
end
-- Recorded by other means: then its balance was changed by other means too.
if ARGV[5] == '1' and status ~= 'conflict' and status ~= 'memory' then
  return { 'recorded', balance_now(KEYS[1]) }
end
if status ~= 'moved' then
  return { status }
end
-- It is no move of this id that is to be filed or removed: that comes first.
if pending then
  return { 'busy', '', pending }
end
redis.call('HSET', KEYS[3], ARGV[1], ARGV[3])
write_move(KEYS[1], KEYS[2], ARGV[1], ARGV[2], written, ARGV[4])
return { status, written, ARGV[3] }
