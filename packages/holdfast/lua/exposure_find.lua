-- To which variant of an experiment members were exposed.
--
-- KEYS  for each: the index   the bitmap of all who were exposed   those of the variants that the caller knows
-- ARGV  1 number of them   then for each: the generation of the index   the member: 16 bytes of an id, or a position of the caller's own
-- Returns for each the variant from 1 on, 0 for one that is not among them, -1 for none; or {'~', the generation that the index has}
-- @keys 3+
-- @batch 64
-- @resend safe
-- @readonly
-- @include primitives/each
-- @include activity/index
-- @include exposure/seen

return each(#KEYS / tonumber(ARGV[1]), 2, function(k, a)
  local position, instead = position_of(KEYS[k + 1], ARGV[a + 1], ARGV[a + 2])
  if instead then
    return instead
  end
  return position and seen_in(k, digits(position)) or -1
end)
