-- Begins the leases of keys anew, each by its owner.
--
-- KEYS  for each: the key
-- ARGV  1 number of them   then for each: what stands for its token   the lease, ms   for how long to remember it, ms
-- Returns for each 1, or 0 when it is somebody else's by now, or ended
-- @keys 1+
-- @batch 64
-- @resend safe
-- @include primitives/each
-- @include primitives/clock
-- @include idempotency/record

return each(1, 3, function(k, a)
  local record = read_record(KEYS[k + 1])
  if not record or record.token ~= ARGV[a + 1] or record.state ~= 'PROCESSING' then
    return 0
  end
  local now = clock_ms('')
  record.lease_until, record.updated = now + tonumber(ARGV[a + 2]), now
  write_record(KEYS[k + 1], record, ARGV[a + 3])
  return 1
end)
