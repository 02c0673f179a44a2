-- Tells what is to be done with transactions of a client.
--
-- KEYS  1 what is to be done
-- ARGV  none
-- Returns { id, what to do, … }, or nil: the key is no hash
-- @keys 1
-- @resend safe
-- @readonly
-- @include stripe402/damage

local pending = redis.pcall('HGETALL', KEYS[1])
if is_error(pending) and is_wrong_type(pending) then
  return false
end
return pending
