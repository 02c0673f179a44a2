-- A value that says by which layout it was written, so that it is never read by another:
--
--   'L'   4 bytes of the hash of the layout   its bytes

local LAYOUT_BYTES = 5

-- Its bytes without that; nil: there is none.
local function stored(key, layout, size)
  local value = redis.call('GET', key)
  if not value then
    return nil
  end
  if #value < LAYOUT_BYTES or string.sub(value, 1, 1) ~= 'L' then
    damaged()
  end
  if string.sub(value, 2, LAYOUT_BYTES) ~= layout then
    error({ err = 'LAYOUT' })
  end
  if #value ~= LAYOUT_BYTES + size then
    damaged()
  end
  return string.sub(value, LAYOUT_BYTES + 1)
end
