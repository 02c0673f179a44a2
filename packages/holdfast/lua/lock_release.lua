-- Gives the lock of a wallet back, if it is still one's own: by now it may be somebody else's.
--
-- KEYS  1 the lock
-- ARGV  1 who has it
-- Returns 1, or 0 when it was lost (or given back by the same call before)
-- @keys 1
-- @resend safe

if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('DEL', KEYS[1])
