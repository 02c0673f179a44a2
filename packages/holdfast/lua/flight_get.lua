-- Reads values that somebody loads; where there is none, whoever asks first gets the marker, and with it the task of loading it. A value of
-- another schema is as good as none.
--
-- KEYS  for each: the value   the marker of who loads it
-- ARGV  1 number of them   then for each: what the value begins with   who asks, unique to this asking   how long the marker stands, ms
-- Returns for each {for how long it is still there in ms, the value}, or 'taken' when the marker is one's own now, or {'busy', ms} while
--         somebody else has it, or {'failed', ms} while nobody should try, because whoever had it could not load
-- @keys 2+
-- @batch 64
-- @resend safe
-- @include primitives/each
-- @include lock/take

return each(2, 3, function(k, a)
  local value, begin = redis.call('GET', KEYS[k + 1]), ARGV[a + 1]
  if value then
    local left_ms = redis.call('PTTL', KEYS[k + 1])
    if string.sub(value, 1, 2) ~= '1 ' or left_ms == -1 then
      damaged()
    end
    if string.sub(value, 1, #begin) == begin then
      return { left_ms, value }
    end
  end
  local busy_ms = take(KEYS[k + 2], ARGV[a + 2], ARGV[a + 3])
  if busy_ms == 0 then
    return 'taken'
  end
  return { redis.call('GET', KEYS[k + 2]) == '!' and 'failed' or 'busy', busy_ms }
end)
