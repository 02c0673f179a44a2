-- Does one string stand before another by its bytes, as in a sorted set and in src/machine? Lua's own `<` goes by the server's language.
-- Names often begin alike (all codes of a sale do, for 22 characters): equal stretches are passed over at once, because Lua has every string once.

local STRETCH = 16

local function is_before(one, other)
  local from = 1
  while from <= #one and string.sub(one, from, from + STRETCH - 1) == string.sub(other, from, from + STRETCH - 1) do
    from = from + STRETCH
  end
  for i = from, math.min(#one, #other) do
    local a, b = string.byte(one, i), string.byte(other, i)
    if a ~= b then
      return a < b
    end
  end
  return #one < #other
end
