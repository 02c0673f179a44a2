-- Sets markers, each for a time, where none is. Whose it is already has it for that time from now. A copy of the call that arrives after the
-- marker was released sets it for nobody: then it stands until its time is over.
--
-- KEYS  for each: the marker
-- ARGV  1 number of them   then for each: what stands for the token of this claim   for how long, ms
-- Returns for each 0 when it is claimed, otherwise for how long it still stands, ms: 1 at least
-- @keys 1+
-- @batch 64
-- @resend safe
-- @include primitives/each
-- @include primitives/token
-- @include primitives/left

return each(1, 2, function(k, a)
  local key, token, ttl = KEYS[k + 1], ARGV[a + 1], ARGV[a + 2]
  if redis.call('SET', key, token, 'NX', 'PX', ttl) then
    return 0
  end
  if check_token(redis.call('GET', key)) == token then
    redis.call('PEXPIRE', key, ttl)
    return 0
  end
  return left(key)
end)
