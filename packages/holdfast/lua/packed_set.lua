-- Sets packed fields.
--
-- KEYS  for each: the fields
-- ARGV  1 number of them   then for each: the layout   its bytes   for how long to keep new ones, ms, or '' for good
--       what to set, as `u8 40 5 i12 48 -3`: type, first bit, number
-- Returns for each 1 if there was nothing before, else 0
-- @keys 1+
-- @batch 64
-- @resend safe
-- @include packed/fields

return each(1, 4, function(k, a)
  local key = KEYS[k + 1]
  local is_new = not packed(key, a)
  local writes = {}
  for kind, first, number in string.gmatch(ARGV[a + 4], '(%S+) (%S+) (%S+)') do
    append(writes, 'SET', kind, first, number)
  end
  if is_new then
    begin(key, a, ARGV[a + 3])
  end
  redis.call('BITFIELD', key, unpack(writes))
  return is_new and 1 or 0
end)
