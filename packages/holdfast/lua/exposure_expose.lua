-- Exposes a member to a variant of an experiment, unless it was exposed to one before: the first one stays.
--
-- KEYS  for each: the index   the bitmap of all who were exposed   those of the variants that the caller knows
-- ARGV  1 number of them   then for each: the generation of the index   the member: 16 bytes of an id, or a position of the caller's own
--       the first position that is too high   for how long to keep the experiment, ms   which of the variants, from 1
-- Returns for each {1 if it was exposed by this, else 0; the variant that it was exposed to, 0: one that is not among them; its position}, or
--         {'~', the generation that the index has}, or 'full'
-- @keys 3+
-- @batch 64
-- @resend safe
-- @include primitives/each
-- @include activity/index
-- @include exposure/seen

return each(#KEYS / tonumber(ARGV[1]), 5, function(k, a)
  local index, all, keep_ms, which = KEYS[k + 1], KEYS[k + 2], ARGV[a + 4], tonumber(ARGV[a + 5])
  local positions, fresh = positions_of(index, ARGV[a + 1], a + 2, a + 2, tonumber(ARGV[a + 3]))
  if not positions then
    return fresh
  end
  local seen = seen_in(k, digits(positions[1]))
  if seen then
    return { 0, seen, positions[1] }
  end
  keep_positions(index, fresh)
  local left_ms = redis.call('PTTL', all)
  if left_ms == -2 then
    redis.call('SET', all, '', 'PX', keep_ms)
  end
  local variant = KEYS[k + 2 + which]
  if redis.call('EXISTS', variant) == 0 then
    -- It ends when the experiment does, so that variants can be compared to the end.
    redis.call('SET', variant, '', 'PX', left_ms < 0 and keep_ms or math.max(left_ms, 1))
  end
  redis.call('SETBIT', all, digits(positions[1]), 1)
  redis.call('SETBIT', variant, digits(positions[1]), 1)
  return { 1, which, positions[1] }
end)
