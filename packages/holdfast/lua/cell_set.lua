-- Writes cells, each on its condition and with its end in the same command.
--
-- KEYS  for each: the cell
-- ARGV  1 number of them   then for each: the value   when: 'always', 'missing' or 'there'
--       its end where it is there: ms, 'keep' or 'none'   its end where it is missing: ms or 'none'   1 to tell what was there
-- Returns for each 'written', or 'refused', and behind it what was there: when written, only if that was asked for
-- @keys 1+
-- @batch 64
-- @resend never
-- @include primitives/each
-- @include primitives/put

return each(1, 5, function(k, a)
  local key, when = KEYS[k + 1], ARGV[a + 2]
  local held = redis.call('GET', key)
  if (when == 'missing' and held) or (when == 'there' and not held) then
    return { 'refused', held }
  end
  put(key, ARGV[a + 1], held and ARGV[a + 3] or ARGV[a + 4])
  return { 'written', ARGV[a + 5] == '1' and held }
end)
