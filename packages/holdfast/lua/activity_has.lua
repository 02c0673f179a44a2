-- Whether members are marked in bitmaps.
--
-- KEYS  for each: the index   the bitmap
-- ARGV  1 number of them   then for each: the generation of the index   the member: 16 bytes of an id, or a position of the caller's own
-- Returns for each 1 or 0, or {'~', the generation that the index has}
-- @keys 2+
-- @batch 64
-- @resend safe
-- @readonly
-- @include primitives/each
-- @include activity/index

return each(2, 2, function(k, a)
  local position, instead = position_of(KEYS[k + 1], ARGV[a + 1], ARGV[a + 2])
  if instead then
    return instead
  end
  return position and redis.call('GETBIT', KEYS[k + 2], digits(position)) or 0
end)
