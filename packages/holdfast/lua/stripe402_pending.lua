-- Tells what is to be done with transactions of a client.
--
-- KEYS  1 what is to be done
-- ARGV  none
-- Returns { id, what to do, … }, or nil: the key is no hash
-- @keys 1
-- @resend safe
-- @readonly

local pending = redis.pcall('HGETALL', KEYS[1])
return not pending.err and pending
