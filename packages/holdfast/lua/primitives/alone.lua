-- One call whose shape is its own. What goes wrong is told as `each` tells it: {'!', why}.
-- @include primitives/each

local function alone(act)
  local done, answer = pcall(act)
  if done then
    return answer
  end
  return { '!', type(answer) == 'table' and answer.err or tostring(answer) }
end
