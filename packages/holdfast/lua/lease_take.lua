-- Takes leases as lock_take does, and draws a token for each in the same step. Sent twice, the second token counts: the first one was
-- never told.
--
-- KEYS  for each: the lock   its last token
-- ARGV  1 number of them   then for each: who takes it, unique to this taking   for how long, ms
-- Returns for each the token in digits when it is taken, otherwise as a number for how long somebody else still has it, ms: 1 at least
-- @keys 2+
-- @batch 64
-- @resend safe
-- @include primitives/each
-- @include primitives/count
-- @include lock/take
-- @include lock/token

return each(2, 2, function(k, a)
  local last = count_of(redis.call('GET', KEYS[k + 2]))
  if last == COUNT_MAX then
    damaged()
  end
  local busy_ms = take(KEYS[k + 1], ARGV[a + 1], ARGV[a + 2])
  if busy_ms > 0 then
    return busy_ms
  end
  return draw_token(KEYS[k + 2], last)
end)
