-- For how long a key that should have an end is still there, ms: 1 at least. One without an end is nothing that we have written.
local function left(key)
  local ms = redis.call('PTTL', key)
  if ms == -1 then
    damaged()
  end
  return math.max(1, ms)
end
