-- Combines bitmaps of one index into another one, which takes the place of what stood under its name when it is whole. What is small is
-- done at once; of the rest this does one portion, and is called again for the next.
--
-- KEYS  1 the index   2 the result   3 the result as far as it is made   4 and 5 to work with   then the bitmaps   then as many to work with
-- ARGV  1 number of bitmaps   2 the generation of the index   3 AND, OR, XOR, NOT (one bitmap), ANDNOT (the first without the others)
--       4 first byte of the portion   5 most bytes, of all bitmaps and the result, to do at once   6 most bytes of a portion, of all too
--       7 bytes of the result, or -1: not known yet   8 positions that NOT reaches to, or -1: all that the index has given out
--       9 for how long to keep the result, ms   10 for each bitmap 1 when it has to be there, else 0
-- Returns {marked in this portion, first byte of the next, bytes of the result, positions as in ARGV[8]}, or 'lost' when what is made
--         so far is gone, or {'missing', which bitmap is not there}, or {'~', the generation that the index has}
-- @keys 7+
-- @batch 32
-- @resend safe
-- @include primitives/each
-- @include activity/index

-- What is made half goes by itself when whoever makes it has died.
local UNFINISHED_MS = 60000

-- A AND NOT B is A XOR (A AND B). Redis's own NOT would end where B ends, and mark the rest of its last byte.
local function combine(how, operands, into)
  if how ~= 'ANDNOT' then
    redis.call('BITOP', how, into, unpack(operands))
    return
  end
  redis.call('BITOP', 'OR', into, unpack(operands, 2))
  redis.call('BITOP', 'AND', into, operands[1], into)
  redis.call('BITOP', 'XOR', into, operands[1], into)
end

-- Bytes `from` to `to` of a bitmap in which every position below `population` is marked. Made by Redis: to make it here takes 35 ms a MB.
local function fill(key, population, from, to)
  local bits = (to - from + 1) * 8
  redis.call('SET', key, '', 'PX', UNFINISHED_MS)
  if bits == 0 then
    return
  end
  redis.call('SETBIT', key, digits(bits - 1), 0)
  redis.call('BITOP', 'NOT', key, key)
  for bit = population - from * 8, bits - 1 do
    redis.call('SETBIT', key, digits(bit), 0)
  end
end

local index, result, made, work, full = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local count, how, from = tonumber(ARGV[1]), ARGV[3], tonumber(ARGV[4])
local total, population, keep_ms = tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[9]
local instead = other_generation(index, ARGV[2])
if instead then
  return instead
end
redis.call('STRLEN', result)
local longest, operands = 0, {}
for i = 1, count do
  operands[i] = KEYS[5 + i]
  longest = math.max(longest, redis.call('STRLEN', operands[i]))
  if string.sub(ARGV[10], i, i) == '1' and redis.call('EXISTS', operands[i]) == 0 then
    return { 'missing', i }
  end
end
-- Not only where there is none: after a failover there may be one that ends before this portion.
if redis.call('STRLEN', made) < from then
  return 'lost'
end
if how == 'NOT' and population < 0 then
  population = count_of(redis.call('HGET', index, 'next'))
end
if total < 0 then
  total = how == 'NOT' and math.ceil(population / 8) or longest
end

local is_whole = from == 0 and (total == 0 or math.max(total, longest) * (count + 1) <= tonumber(ARGV[5]))
local size = is_whole and total or math.max(math.floor(tonumber(ARGV[6]) / (count + 1)), 1)
local to = math.min(from + size, total) - 1
if not is_whole then
  for i = 1, count do
    redis.call('SET', KEYS[5 + count + i], redis.call('GETRANGE', operands[i], from, to), 'PX', UNFINISHED_MS)
    operands[i] = KEYS[5 + count + i]
  end
end
if how == 'NOT' then
  fill(full, population, from, to)
  table.insert(operands, 1, full)
  how = 'ANDNOT'
end

combine(how, operands, is_whole and made or work)
local marked = redis.call('BITCOUNT', is_whole and made or work)
if not is_whole then
  local bytes = redis.call('GET', work) or ''
  if from == 0 then
    redis.call('SET', made, bytes, 'PX', UNFINISHED_MS)
  else
    redis.call('SETRANGE', made, from, bytes)
    redis.call('PEXPIRE', made, UNFINISHED_MS)
  end
  redis.call('UNLINK', work, unpack(KEYS, 6 + count))
end
redis.call('UNLINK', full)
if to + 1 < total then
  return { marked, to + 1, total, population }
end
-- Of bitmaps that are all empty nothing comes: but it was made.
if redis.call('EXISTS', made) == 0 then
  redis.call('SET', made, '', 'PX', keep_ms)
end
redis.call('PEXPIRE', made, keep_ms)
redis.call('RENAME', made, result)
return { marked, total, total, population }
