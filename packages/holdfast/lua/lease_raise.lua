-- Has leases for longer, as lock_renew does, and remembers that their tokens were used: whoever takes one of them here next gets a larger one. For leases
-- over several servers, each of which has drawn a token of its own.
--
-- KEYS  for each: the lock   its last token
-- ARGV  1 number of them   then for each: who has it   for how long from now, ms   the token
-- Returns for each 1, or 0 when it was lost
-- @keys 2+
-- @batch 64
-- @resend safe
-- @include primitives/each
-- @include primitives/count
-- @include lock/token

return each(2, 3, function(k, a)
  local last = count_of(redis.call('GET', KEYS[k + 2]))
  if redis.call('GET', KEYS[k + 1]) ~= ARGV[a + 1] then
    return 0
  end
  local token = tonumber(ARGV[a + 3])
  if token > last then
    keep_token(KEYS[k + 2], token)
  end
  return redis.call('PEXPIRE', KEYS[k + 1], ARGV[a + 2])
end)
