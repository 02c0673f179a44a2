-- Looks at what is known of keys.
--
-- KEYS  for each: the key
-- ARGV  1 number of them
-- Returns for each {state, attempt, what is left of the lease, ms, the response or the reason}, or {'FREE'} when nothing is known
-- @keys 1+
-- @batch 64
-- @resend safe
-- @readonly
-- @include primitives/each
-- @include primitives/clock
-- @include idempotency/record

return each(1, 0, function(k)
  local record = read_record(KEYS[k + 1])
  if not record then
    return { 'FREE' }
  end
  return { record.state, record.attempt, math.max(0, record.lease_until - clock_ms('')), record.payload }
end)
