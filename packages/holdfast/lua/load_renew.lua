-- Who is loading a wallet is still at it: others go on waiting.
--
-- KEYS  1 the lease
-- ARGV  1 who asks   2 for how long, ms
-- Returns 1; 0: somebody else has it by now, or nobody
-- @keys 1
-- @resend safe

if redis.pcall('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
