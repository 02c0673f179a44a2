-- Moves cells to another state, if they are in one from which that may be reached.
--
-- KEYS  for each: the cell
-- ARGV  1 number of them   then for each: the next state   its end: ms, 'keep' or 'none'
--       the states from which it may be reached, each between blanks: ' A B '
-- Returns for each 'transitioned', 'wrong_state' or 'missing', and behind it the state that was there
-- @keys 1+
-- @batch 64
-- @resend never
-- @include primitives/each
-- @include primitives/put

return each(1, 3, function(k, a)
  local key = KEYS[k + 1]
  local state = redis.call('GET', key)
  if not state then
    return { 'missing' }
  end
  -- A state has no blank: otherwise several in a row would be found in the list.
  if not string.find(state, '^[%w_.-]+$') then
    damaged()
  end
  if not string.find(ARGV[a + 3], ' ' .. state .. ' ', 1, true) then
    return { 'wrong_state', state }
  end
  put(key, ARGV[a + 1], ARGV[a + 2])
  return { 'transitioned', state }
end)
