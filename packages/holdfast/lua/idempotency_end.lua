-- Ends attempts at keys, each by its owner: with a response that is kept, or so that another may try at once. Said again by the same owner, it
-- is what it was.
--
-- KEYS  for each: the key
-- ARGV  1 number of them   then for each: what stands for its token   COMPLETED or FAILED_RETRYABLE   for how long to remember it, ms
--       the response, or the reason
-- Returns for each {'ended', the response or the reason that is kept}, or {'lost'} when it is somebody else's by now, or ended otherwise
-- @keys 1+
-- @batch 64
-- @resend safe
-- @include primitives/each
-- @include primitives/clock
-- @include idempotency/record

return each(1, 4, function(k, a)
  local key, token, state, keep_ms, payload = KEYS[k + 1], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4]
  local record = read_record(key)
  if not record or record.token ~= token then
    return { 'lost' }
  end
  if record.state == state then
    return { 'ended', record.payload }
  end
  if record.state ~= 'PROCESSING' then
    return { 'lost' }
  end
  record.state, record.payload, record.lease_until, record.updated = state, payload, 0, clock_ms('')
  write_record(key, record, keep_ms)
  return { 'ended', payload }
end)
