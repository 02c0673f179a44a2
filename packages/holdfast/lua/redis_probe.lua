-- Is the server there, and does it write? One that is full, or lacks the replicas that it should have, goes on answering whoever only reads.
--
-- KEYS  1 a key that is there for nothing else
-- ARGV  none
-- Returns 1
-- @keys 1
-- @resend safe

redis.call('SET', KEYS[1], '', 'PX', 1000)
return 1
