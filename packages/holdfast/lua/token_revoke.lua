-- Ends tokens that were not used, each until it would have expired, and forgets whose they were.
--
-- KEYS  for each: the token
-- ARGV  1 number of them
-- Returns for each 1, or 0 when there is nothing to end: it was used, has expired, or never was
-- @keys 1+
-- @batch 64
-- @resend safe
-- @include primitives/each
-- @include primitives/token
-- @include token/record

return each(1, 0, function(k)
  local record = read_record(KEYS[k + 1])
  if not record or record.state == 'USED' then
    return 0
  end
  redis.call('SET', KEYS[k + 1], line('REVOKED', '-', record.issued, record.expires), 'KEEPTTL')
  return 1
end)
