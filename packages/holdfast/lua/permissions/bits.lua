-- Flags of a subject. The first name of a layout has the highest bit of the first byte.
-- @include primitives/each
-- @include primitives/layout

-- Those of an older layout in the places of this one. `moves`: two bytes a flag, where it was and where it is; who is not named is dropped.
local function moved(bits, moves, size)
  local bytes = {}
  for i = 1, size do
    bytes[i] = 0
  end
  for i = 1, #moves, 2 do
    local from, to = string.byte(moves, i, i + 1)
    if bit.band(string.byte(bits, math.floor(from / 8) + 1), bit.rshift(128, from % 8)) ~= 0 then
      local at = math.floor(to / 8) + 1
      bytes[at] = bit.bor(bytes[at], bit.rshift(128, to % 8))
    end
  end
  return string.char(unpack(bytes))
end

-- What there is of a subject: ARGV a + 1 the layout, a + 2 its bytes, a + 3 the older layout, a + 4 its bytes, a + 5 the moves from it. The
-- second answer: whether it is still written by the older one.
local function flags_of(k, a, has_older)
  local size = tonumber(ARGV[a + 2])
  local bits = stored(KEYS[k + 1], ARGV[a + 1], size)
  if bits or not has_older then
    return bits, false
  end
  local older = stored(KEYS[k + 2], ARGV[a + 3], tonumber(ARGV[a + 4]))
  return older and moved(older, ARGV[a + 5], size), older ~= nil
end
