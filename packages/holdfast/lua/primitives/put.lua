-- Writes a value and its end in one command: 'keep' leaves the end as it is, 'none' is without one, otherwise it is in so many ms.
-- 'keep' is only for a key that is there: KEEPTTL would make a new one without an end.

local function put(key, value, ends)
  if ends == 'keep' then
    redis.call('SET', key, value, 'KEEPTTL')
  elseif ends == 'none' then
    redis.call('SET', key, value)
  else
    redis.call('SET', key, value, 'PX', ends)
  end
end
