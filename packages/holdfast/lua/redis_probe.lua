-- Is the server there, does it write, and does it let us do all that wallets need? One that is full, or lacks the replicas that it should
-- have, goes on answering whoever only reads; and where a right is missing, a script breaks wherever it comes to need it. So every command
-- that a script of the sequencer calls is called here.
--
-- KEYS  1 a key that is there for nothing else
-- ARGV  none
-- Returns 1
-- @keys 1
-- @resend safe
-- @include wallet/server

local key = KEYS[1]
incarnation()
server_clock()

redis.call('SET', key, '', 'PX', 1000)
redis.call('GET', key)
redis.call('EXISTS', key)
redis.call('PERSIST', key)
redis.call('PEXPIRE', key, 1000)
redis.call('RENAME', key, key)
redis.call('UNLINK', key)

redis.call('HSET', key, 'field', '')
redis.call('HGET', key, 'field')
redis.call('HMGET', key, 'field')
redis.call('HGETALL', key)
redis.call('HLEN', key)
redis.call('HDEL', key, 'field')

redis.call('ZADD', key, 0, 'name')
redis.call('ZSCORE', key, 'name')
redis.call('ZRANGEBYSCORE', key, '-inf', '+inf')
redis.call('ZSCAN', key, 0)
redis.call('ZREM', key, 'name')
redis.call('DEL', key)
return 1
