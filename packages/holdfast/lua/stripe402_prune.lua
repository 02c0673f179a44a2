-- Removes transactions that are older than a time: themselves, their places in the index, and what is remembered of them as moves. Where
-- all keys of a client may be named in one call.
--
-- KEYS  1 the index of transactions   2 what the client's moves remember   then the transactions
-- ARGV  1 how many   2 older than this, ms   then their ids
-- Returns how many were removed
-- @keys 2+
-- @batch 100
-- @resend safe

local removed = 0
for i = 3, #KEYS do
  local score = redis.call('ZSCORE', KEYS[1], ARGV[i])
  if score and tonumber(score) < tonumber(ARGV[2]) then
    redis.call('DEL', KEYS[i])
    -- Ours alone; should it be damaged, the transactions can go all the same.
    redis.pcall('HDEL', KEYS[2], ARGV[i])
    removed = removed + redis.call('ZREM', KEYS[1], ARGV[i])
  end
end
return removed
