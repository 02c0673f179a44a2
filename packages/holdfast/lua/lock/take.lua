-- Takes a lock, for a time, if nobody has it; who has it already has it for that time from now. The value is its owner, unique to one
-- taking. A lock always has an end: what stands there without one is of somebody else, and would be busy for good.

-- Returns 0 when it is taken, otherwise for how long somebody else still has it, ms: 1 at least.
local function take(key, owner, ttl_ms)
  if redis.call('SET', key, owner, 'NX', 'PX', ttl_ms) then
    return 0
  end
  if redis.call('GET', key) == owner then
    redis.call('PEXPIRE', key, ttl_ms)
    return 0
  end
  local left_ms = redis.call('PTTL', key)
  if left_ms == -1 then
    damaged()
  end
  return math.max(1, left_ms)
end
