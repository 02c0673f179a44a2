-- Changes a balance and records the transaction that says so, both or neither. Where all keys of a client may be named in one call.
--
-- KEYS  1 the client   2 what its moves remember   3 the transaction   4 the index of transactions
-- ARGV  1 id of the transaction   2 the change: +n or -n   3 the transaction   4 its time, ms   5 updatedAt
-- Returns { 'moved' | 'again', balance after }, { 'recorded', balance now or why there is none, the transaction that has the id }, or { why it is refused }:
--         'unknown' 'short' 'over' 'conflict' 'type' 'balance' 'memory' 'transaction' 'index'
-- @keys 4
-- @resend safe
-- @include stripe402/move

local stored = redis.pcall('GET', KEYS[3])
if is_error(stored) then
  return is_wrong_type(stored) and { 'transaction' } or stored
end
local status, written = decide_move(KEYS[1], KEYS[2], ARGV[1], ARGV[2])
if status == 'again' then
  return { status, written }
end
-- Recorded by other means: then its balance was changed by other means too.
if stored and status ~= 'conflict' and status ~= 'memory' then
  return { 'recorded', balance_now(KEYS[1]), stored }
end
if status ~= 'moved' then
  return { status }
end
-- The first write is the one that can fail.
local indexed = redis.pcall('ZADD', KEYS[4], ARGV[4], ARGV[1])
if is_error(indexed) then
  return is_wrong_type(indexed) and { 'index' } or indexed
end
redis.call('SET', KEYS[3], ARGV[3])
write_move(KEYS[1], KEYS[2], ARGV[1], ARGV[2], written, ARGV[5])
return { status, written }
