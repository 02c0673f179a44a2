-- Marks many members in one bitmap: all of them, or none when the index has no room for those that are new to it.
--
-- KEYS  1 the index   2 the bitmap
-- ARGV  1 number of members   2 the generation of the index   3 the first position that is too high
--       4 for how long to keep a new bitmap, ms   5… the members: 16 bytes of an id, or a position of the caller's own
-- Returns {how many were not marked before, the highest of the positions}, or {'~', the generation that the index has}, or 'full'
-- @keys 2
-- @batch 256
-- @resend safe
-- @include activity/mark

local last = 4 + tonumber(ARGV[1])
local before, more = mark(KEYS[1], KEYS[2], ARGV[2], 5, last, tonumber(ARGV[3]), ARGV[4])
if not before then
  return more
end
local marked, highest = 0, 0
for i = 1, #before do
  marked = marked + 1 - before[i]
  highest = math.max(highest, more[i])
end
return { marked, highest }
