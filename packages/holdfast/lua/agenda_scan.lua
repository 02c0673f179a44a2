-- Names on a shard's agenda, a part at a time and in no order: the wallets of the shard that are in Redis. Takes none of them.
--
-- KEYS  1 the shard's agenda
-- ARGV  1 where to go on: 0 at first   2 about how many
-- Returns { where to go on (0: that was all), { name, score, … } }
-- @keys 1
-- @resend safe
-- @readonly

return redis.call('ZSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[2])
