-- Removes a transaction, if it is still the one that was to be removed.
--
-- KEYS  1 the transaction
-- ARGV  1 the transaction as it was
-- Returns 1 if it was removed, otherwise 0
-- @keys 1
-- @resend safe

if redis.pcall('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('DEL', KEYS[1])
