-- Marks members of an index in a bitmap, which gets its end with its first write.
-- @include primitives/each
-- @include activity/index

-- Answers as a list: for each member 1 if it was marked before, else 0; and their positions. Or what there is to say instead.
local function mark(index, bitmap, generation, first, last, max, keep_ms)
  local positions, fresh = positions_of(index, generation, first, last, max)
  if not positions then
    return nil, fresh
  end
  -- Read before anything is written, because something else may stand there.
  redis.call('STRLEN', bitmap)
  keep_positions(index, fresh)
  if redis.call('EXISTS', bitmap) == 0 then
    redis.call('SET', bitmap, '', 'PX', keep_ms)
  end
  local before = {}
  for i = 1, #positions do
    before[i] = redis.call('SETBIT', bitmap, digits(positions[i]), 1)
  end
  return before, positions
end
