-- Marks a member in a bitmap. An id that has no position yet gets the next one, and a new bitmap its end, in the same step.
--
-- KEYS  for each: the index   the bitmap
-- ARGV  1 number of them   then for each: the generation of the index   the member: 16 bytes of an id, or a position of the caller's own
--       the first position that is too high   for how long to keep a new bitmap, ms
-- Returns for each {1 if it was marked before, else 0; its position}, or {'~', the generation that the index has}, or 'full'
-- @keys 2+
-- @batch 64
-- @resend safe
-- @include activity/mark

return each(2, 4, function(k, a)
  local before, more = mark(KEYS[k + 1], KEYS[k + 2], ARGV[a + 1], a + 2, a + 2, tonumber(ARGV[a + 3]), ARGV[a + 4])
  return before and { before[1], more[1] } or more
end)
