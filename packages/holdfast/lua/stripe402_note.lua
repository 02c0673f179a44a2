-- Notes what is to be done with a transaction, if nothing is noted of it yet: to be filed, or to be removed.
--
-- KEYS  1 what is to be done
-- ARGV  1 id of the transaction   2 what to do with it
-- Returns what is noted now, or nil: the key is no hash
-- @keys 1
-- @resend safe
-- @include stripe402/damage

local noted = redis.pcall('HSETNX', KEYS[1], ARGV[1], ARGV[2])
if is_error(noted) then
  return not is_wrong_type(noted) and noted
end
return redis.call('HGET', KEYS[1], ARGV[1])
