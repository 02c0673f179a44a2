-- Has the lock of a wallet for longer, if it is still one's own. One that was lost is not taken again: somebody may have had it since.
--
-- KEYS  1 the lock
-- ARGV  1 who has it   2 for how long from now, ms
-- Returns 1, or 0 when it was lost
-- @keys 1
-- @resend safe

if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
