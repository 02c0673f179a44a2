-- Sets a part of a sale's stock aside, until all of it is there and `wallet_install` takes it over: the whole of a large one would keep the
-- server from everybody else, and there are not as many arguments to a call. Nobody reads it before that.
--
-- KEYS  1 where it is set aside
-- ARGV  1 after how long it goes where nobody takes it over, ms   then field, value, …: up to 4,000
-- Returns the server's clock
-- @keys 1
-- @resend safe
-- @include wallet/server

redis.call('HSET', KEYS[1], unpack(ARGV, 2))
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return server_clock()
