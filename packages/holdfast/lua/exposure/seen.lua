-- To which variant a position was exposed: from 1 on; 0: to one that the caller does not know; nil: to none. Reads all bitmaps, so that
-- what is wrong with one is told before anything is written.
local function seen_in(k, position)
  local each_keys = #KEYS / tonumber(ARGV[1])
  local seen = redis.call('GETBIT', KEYS[k + 2], position) == 1 and 0 or nil
  for variant = each_keys - 2, 1, -1 do
    if redis.call('GETBIT', KEYS[k + 2 + variant], position) == 1 then
      seen = variant
    end
  end
  return seen
end
