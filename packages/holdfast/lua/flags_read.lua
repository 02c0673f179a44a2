-- Looks at copies of flags. Where the caller has other flags it gets those of the copy; and when nobody has asked Postgres for too long,
-- one of all callers is told to, until its time for that is up.
--
-- KEYS  for each: the copy   whose turn it is to ask Postgres
-- ARGV  1 number of them   then for each: the id of the flags that the caller has, or empty   the caller's token
--       age at which a copy is asked about, ms   how long who asks has for it, ms
-- Returns for each {id of its flags, or empty: there is no copy; its age in ms, in digits; its flags, or empty: the caller has them;
--         1 when it is the caller's turn}
-- @keys 2+
-- @batch 64
-- @resend safe
-- @include primitives/each
-- @include primitives/flags

return each(2, 4, function(k, a)
  local copy, turn = KEYS[k + 1], KEYS[k + 2]
  local known, token, ask_at, ask_ms = ARGV[a + 1], ARGV[a + 2], tonumber(ARGV[a + 3]), ARGV[a + 4]
  local text = redis.call('GETRANGE', copy, 0, HEAD_BYTES - 1)
  local asking = redis.call('GET', turn)
  local id, confirmed = read_head(text)
  if not id and text ~= '' then
    damaged()
  end
  local now = clock()
  -- A confirmation from the future is of another clock: it says nothing.
  local age = (not id or confirmed > now) and now or now - confirmed
  local mine = asking == token
  if not asking and (not id or age >= ask_at) then
    redis.call('SET', turn, token, 'PX', ask_ms)
    mine = true
  end
  local flags = id and id ~= known and redis.call('GETRANGE', copy, HEAD_BYTES, -1) or ''
  return { id or '', string.format('%.0f', age), flags, mine and 1 or 0 }
end)
