-- Reads flags of subjects, also those that are still written by an older layout.
--
-- KEYS  for each: the flags   by the older layout, if there is one
-- ARGV  1 number of them   then for each: the layout   its bytes   the older layout   its bytes   the moves from it
-- Returns for each the flags as bytes, or '' when there are none
-- @keys 1+
-- @batch 64
-- @resend safe
-- @readonly
-- @include permissions/bits

local keys_each = #KEYS / tonumber(ARGV[1])

return each(keys_each, 5, function(k, a)
  return flags_of(k, a, keys_each == 2) or ''
end)
