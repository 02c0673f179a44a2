-- Chunks that become those of the current generation stay for as long as the filter does.

local function is_past(ends_at)
  local time = redis.call('TIME')
  return ends_at ~= '0' and tonumber(ends_at) <= tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000
end

local function has_all(from, to, bytes)
  for i = from, to do
    if not has_chunk(KEYS[i], bytes) then
      return false
    end
  end
  return true
end

local function keep(from, to, ends_at)
  for i = from, to do
    if ends_at == '0' then
      redis.call('PERSIST', KEYS[i])
    else
      redis.call('PEXPIREAT', KEYS[i], ends_at)
    end
  end
end

local function write_state(key, text, ends_at)
  if ends_at == '0' then
    redis.call('SET', key, text)
  else
    redis.call('SET', key, text, 'PXAT', ends_at)
  end
end
