-- Makes empty chunks that nobody knows of yet, with an end: whoever makes them may die before they are of use.
--
-- KEYS  the chunks
-- ARGV  1 number of them   2 bytes of a chunk   3 for how long to keep them, ms
-- Returns 1
-- @keys 1+
-- @batch 16
-- @resend safe

local empty = string.rep('\0', tonumber(ARGV[2]) + 8)
for i = 1, #KEYS do
  redis.call('SET', KEYS[i], empty, 'PX', ARGV[3])
end
return 1
