-- Notes tokens that are about to be given out, each under the generation of its subject, which lives as long as each of its tokens. One that
-- is noted already stays as it is: a copy of the call that arrives late must not bring back what was used or revoked since.
--
-- KEYS  for each: the token   the generation of its subject
-- ARGV  1 number of them   then for each: a generation for a subject that has none   for how long it lives, ms   the payload
-- Returns for each {when it was issued, when it expires, ms}
-- @keys 2+
-- @batch 64
-- @resend safe
-- @include primitives/each
-- @include primitives/token
-- @include primitives/clock
-- @include token/record

return each(2, 3, function(k, a)
  local key, generation_key, ttl = KEYS[k + 1], KEYS[k + 2], tonumber(ARGV[a + 2])
  local noted = read_record(key)
  if noted then
    return { noted.issued, noted.expires }
  end
  local generation = check_token(redis.call('GET', generation_key))
  if not generation then
    generation = ARGV[a + 1]
    redis.call('SET', generation_key, generation, 'PX', ttl)
  elseif redis.call('PTTL', generation_key) < ttl then
    redis.call('PEXPIRE', generation_key, ttl)
  end
  local now = clock_ms('')
  local issued, expires = string.format('%.0f', now), string.format('%.0f', now + ttl)
  redis.call('SET', key, line('LIVE', generation, issued, expires) .. ARGV[a + 3], 'PX', ttl)
  return { issued, expires }
end)
