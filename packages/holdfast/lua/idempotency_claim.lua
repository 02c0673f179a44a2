-- Claims keys, each for a lease: where nothing is known of one, where the last attempt has failed, or where the lease of its owner has run out.
-- Who has it already has it for a lease from now, as the same attempt.
--
-- KEYS  for each: the key
-- ARGV  1 number of them   then for each: what stands for the token of this claim   what stands for the request, or -   the lease, ms
--       for how long to remember it, ms
-- Returns for each one of
--   {'claimed', attempt, 1 when it was taken over}
--   {'processing', what is left of the lease, ms: 1 at least}
--   {'completed', what stands for the request, or -, the response}
--   {'conflict'}  both requests are known and they are not the same
-- @keys 1+
-- @batch 64
-- @resend safe
-- @include primitives/each
-- @include primitives/clock
-- @include idempotency/record

return each(1, 4, function(k, a)
  local key, token, request, lease_ms, keep_ms = KEYS[k + 1], ARGV[a + 1], ARGV[a + 2], tonumber(ARGV[a + 3]), ARGV[a + 4]
  local now = clock_ms('')
  local record = read_record(key)
  if not record then
    record = { token = token, request = request, attempt = 1, took_over = 0, created = now }
  else
    if request ~= '-' and record.request ~= '-' and request ~= record.request then
      return { 'conflict' }
    end
    if record.state == 'COMPLETED' then
      return { 'completed', record.request, record.payload }
    end
    local is_ours = record.state == 'PROCESSING' and record.token == token
    if record.state == 'PROCESSING' and not is_ours and record.lease_until > now then
      return { 'processing', record.lease_until - now }
    end
    if not is_ours then
      record.attempt = record.attempt + 1
      record.took_over = record.state == 'PROCESSING' and 1 or 0
      record.token = token
    end
    if record.request == '-' then
      record.request = request
    end
  end
  record.state, record.payload = 'PROCESSING', ''
  record.lease_until, record.updated = now + lease_ms, now
  write_record(key, record, keep_ms)
  return { 'claimed', record.attempt, record.took_over }
end)
