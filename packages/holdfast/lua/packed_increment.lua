-- Increments packed fields. Which of them would leave their range is known before anything is written: Redis itself would skip those and
-- write the others.
--
-- KEYS  for each: the fields
-- ARGV  1 number of them   then for each: the layout   its bytes   for how long to keep new ones, ms, or '' for good
--       WRAP, SAT, FAIL_FIELD (the others are incremented) or FAIL_ALL (none is)   by how much, as `u8 40 5 i12 48 -3`: type, first bit, number
-- Returns for each {the numbers after it in digits, for each of them 1 if it left its range, else 0}
-- @keys 1+
-- @batch 64
-- @resend never
-- @include packed/fields

-- Differences of numbers of one type have 53 bits too, so nothing here is rounded.
local function leaves(kind, number, by)
  local width = tonumber(string.sub(kind, 2))
  local min, max = 0, 2 ^ width - 1
  if string.sub(kind, 1, 1) == 'i' then
    min, max = -2 ^ (width - 1), 2 ^ (width - 1) - 1
  end
  return by > max - number or by < min - number
end

return each(1, 5, function(k, a)
  local key, overflow = KEYS[k + 1], ARGV[a + 4]
  local is_new = not packed(key, a)
  local fields, reads = {}, {}
  for kind, first, by in string.gmatch(ARGV[a + 5], '(%S+) (%S+) (%S+)') do
    fields[#fields + 1] = { kind = kind, first = first, by = by }
    append(reads, 'GET', kind, first)
  end
  local numbers = redis.call('BITFIELD', key, unpack(reads))
  local left, writes, written = {}, {}, {}
  for i, field in ipairs(fields) do
    local leaving = leaves(field.kind, numbers[i], tonumber(field.by))
    left[i] = leaving and 1 or 0
    if leaving and overflow == 'FAIL_ALL' then
      writes = nil
    elseif writes and not (leaving and overflow == 'FAIL_FIELD') then
      append(writes, 'OVERFLOW', overflow == 'SAT' and 'SAT' or 'WRAP', 'INCRBY', field.kind, field.first, field.by)
      written[#written + 1] = i
    end
  end
  if not writes or #writes == 0 then
    return { in_digits(numbers), left }
  end
  if is_new then
    begin(key, a, ARGV[a + 3])
  end
  for i, number in ipairs(redis.call('BITFIELD', key, unpack(writes))) do
    numbers[written[i]] = number
  end
  return { in_digits(numbers), left }
end)
