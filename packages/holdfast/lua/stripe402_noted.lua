-- Takes back what was noted of a transaction, now that it is done, unless something else is noted by now.
--
-- KEYS  1 what is to be done   2 what the client's moves remember
-- ARGV  1 id of the transaction   2 what was done with it   3 '1': the transaction is gone, and so is what was remembered of it
-- Returns something else that is noted, by chance: { id, what to do }; or an empty list
-- @keys 2
-- @resend safe

if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then
  redis.call('HDEL', KEYS[1], ARGV[1])
  if ARGV[3] == '1' then
    -- Ours alone; should it be damaged, the note can go all the same.
    redis.pcall('HDEL', KEYS[2], ARGV[1])
  end
end
return redis.call('HRANDFIELD', KEYS[1], 1, 'WITHVALUES')
