-- How many were new in this chunk for sure, if this one was; 0 when all its bits had been set.
local function put(key, bytes, offsets)
  local is_new = false
  local first
  for offset in string.gmatch(offsets, '%d+') do
    first = first or offset
    if redis.call('SETBIT', key, offset, 1) == 0 then
      is_new = true
    end
  end
  if not is_new then
    return 0
  end
  local mark = bytes * 8
  return redis.call('BITFIELD', key, 'INCRBY', 'u32', mark, 1, 'INCRBY', 'u32', mark + 32, first)[1]
end
