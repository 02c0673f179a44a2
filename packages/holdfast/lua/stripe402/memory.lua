-- What is remembered of a change that was done: "+500:49500", the change and the balance after it, in digits.

local function remembered_as(change, written)
  return change .. ':' .. written
end

-- The balance after it, in digits; or nil, and why not.
local function recall(remembered, change)
  local was, after = string.match(remembered, '^([+-]%d+):(-?%d+)$')
  if not was then
    return nil, 'memory'
  end
  if was ~= change then
    return nil, 'conflict'
  end
  return after
end
