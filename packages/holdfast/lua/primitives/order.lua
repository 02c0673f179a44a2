-- Does one string stand before another by its bytes, as in a sorted set and in src/machine? Lua's own `<` goes by the server's language.

local function is_before(one, other)
  for i = 1, math.min(#one, #other) do
    local a, b = string.byte(one, i), string.byte(other, i)
    if a ~= b then
      return a < b
    end
  end
  return #one < #other
end
