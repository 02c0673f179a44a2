-- Takes away what Redis shows of keys of which Postgres knows better, unless they are completed: that does not change any more.
--
-- KEYS  for each: the key
-- ARGV  1 number of them
-- Returns for each 1 when something was taken away, otherwise 0
-- @keys 1+
-- @batch 64
-- @resend safe
-- @include primitives/each
-- @include idempotency/record

return each(1, 0, function(k)
  local record = read_record(KEYS[k + 1])
  if not record or record.state == 'COMPLETED' then
    return 0
  end
  return redis.call('DEL', KEYS[k + 1])
end)
