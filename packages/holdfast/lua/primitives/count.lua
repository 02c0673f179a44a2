-- Counts are integers from 0 to 2^53 - 1 in digits: up to there every number of Lua is exact, and so is what '%.0f' makes of it.

local COUNT_MAX = 9007199254740991

local function count_of(value)
  if not value then
    return 0
  end
  local count = #value <= 16 and string.match(value, '^%d+$') and tonumber(value)
  if not count or count > COUNT_MAX then
    damaged()
  end
  return count
end

local function digits(count)
  return string.format('%.0f', count)
end

-- Of `<count>:<count>:<count>`.
local function three_counts(value)
  local one, two, three = string.match(value, '^(%d+):(%d+):(%d+)$')
  one, two, three = tonumber(one), tonumber(two), tonumber(three)
  if not one or one > COUNT_MAX or two > COUNT_MAX or three > COUNT_MAX then
    damaged()
  end
  return one, two, three
end
