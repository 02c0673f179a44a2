-- Takes the lock of a wallet, for a time, if nobody has it. Who has it already has it for that time from now. A copy of the call that
-- arrives after the lock was given back takes it for nobody: then others wait until its time is over.
--
-- KEYS  1 the lock
-- ARGV  1 who takes it: unique to this taking   2 for how long, ms
-- Returns 0 when it is taken, otherwise for how long somebody else still has it, ms: 1 at least
-- @keys 1
-- @resend safe

if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return 0
end
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 0
end
return math.max(1, redis.call('PTTL', KEYS[1]))
