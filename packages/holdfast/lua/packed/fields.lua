-- Numbers side by side in one string, at most 53 bits each: up to there every number of Lua is exact.
-- @include primitives/each
-- @include primitives/layout
-- @include primitives/count

-- Of what is packed by this layout: nil when there is none.
local function packed(key, a)
  return stored(key, ARGV[a + 1], tonumber(ARGV[a + 2]))
end

-- Before the first write: all fields are 0, and the end is set in the same command.
local function begin(key, a, keep_ms)
  local zeros = 'L' .. ARGV[a + 1] .. string.rep('\0', tonumber(ARGV[a + 2]))
  if keep_ms == '' then
    redis.call('SET', key, zeros)
  else
    redis.call('SET', key, zeros, 'PX', keep_ms)
  end
end

local function append(list, ...)
  for _, one in ipairs({ ... }) do
    list[#list + 1] = one
  end
end

-- In digits: as integers of the protocol those near 2^53 would be rounded by the client.
local function in_digits(numbers)
  local texts = {}
  for i, number in ipairs(numbers) do
    texts[i] = digits(number)
  end
  return table.concat(texts, ' ')
end
