-- Reads packed fields.
--
-- KEYS  for each: the fields
-- ARGV  1 number of them   then for each: the layout   its bytes   the fields to read, as `u8 40 i12 48`: type, first bit
-- Returns for each the numbers in digits; where there are none they are 0
-- @keys 1+
-- @batch 64
-- @resend safe
-- @readonly
-- @include packed/fields

return each(1, 3, function(k, a)
  packed(KEYS[k + 1], a)
  local reads = {}
  for kind, first in string.gmatch(ARGV[a + 3], '(%S+) (%S+)') do
    append(reads, 'GET', kind, first)
  end
  return in_digits(redis.call('BITFIELD_RO', KEYS[k + 1], unpack(reads)))
end)
