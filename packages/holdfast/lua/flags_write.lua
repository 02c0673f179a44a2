-- Writes copies of flags as Postgres has them, or confirms that the copy is still like that. A copy only gets older flags from one whose
-- turn it is and who asked after the copy was confirmed: then nothing was changed since it asked, and Postgres itself was put back.
--
-- KEYS  for each: the copy   whose turn it is to ask Postgres
-- ARGV  1 number of them   then for each: the id of the flags   the flags themselves, or empty: the copy is known to have them
--       how long ago Postgres was asked, ms   for how long to keep the copy, ms   the writer's token, or empty: it has changed a flag
-- Returns for each 1, or 0 when the copy stays as it is
-- @keys 2+
-- @batch 64
-- @resend safe
-- @include primitives/each
-- @include primitives/flags

return each(2, 5, function(k, a)
  local copy, turn = KEYS[k + 1], KEYS[k + 2]
  local id, flags, ago, keep_ms, token = ARGV[a + 1], ARGV[a + 2], tonumber(ARGV[a + 3]), ARGV[a + 4], ARGV[a + 5]
  local text = redis.call('GETRANGE', copy, 0, HEAD_BYTES - 1)
  local asking = redis.call('GET', turn)
  -- Anything else that stands there as a string is no copy, and gets written over: Postgres has the flags.
  local has, confirmed = read_head(text)
  local now = clock()
  local at = now - ago
  if has and confirmed > now then
    -- Of another clock: held against this one it would stand for as long as that was ahead.
    confirmed = 0
  end
  if token == '' or asking == token then
    -- Whoever asked before a change has an answer from before it.
    redis.call('DEL', turn)
  end
  if has == id then
    at = math.max(at, confirmed)
  end
  if has == id and flags == '' then
    redis.call('SETRANGE', copy, 0, head(id, at))
    redis.call('PEXPIRE', copy, keep_ms)
    return 1
  end
  local is_turn = token ~= '' and asking == token
  if flags == '' or (has and number_of(has) > number_of(id) and not (is_turn and at >= confirmed)) then
    return 0
  end
  redis.call('SET', copy, head(id, at) .. flags, 'PX', keep_ms)
  return 1
end)
