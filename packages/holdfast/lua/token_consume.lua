-- Uses tokens up, each once. Who has used one and comes again with the same key gets the same answer.
--
-- KEYS  for each: the token   the generation of its subject
-- ARGV  1 number of them   then for each: what stands for the key of this use   for how long to remember the use, ms
-- Returns for each {'consumed', when it was issued, ms, the payload}, or {'used'}, {'revoked'}, {'missing'}
-- @keys 2+
-- @batch 64
-- @resend safe
-- @include primitives/each
-- @include primitives/token
-- @include token/record

return each(2, 2, function(k, a)
  local record = read_record(KEYS[k + 1])
  if not record then
    return { 'missing' }
  end
  if record.state == 'USED' then
    return record.mark == ARGV[a + 1] and { 'consumed', record.issued, record.payload } or { 'used' }
  end
  if not is_live(record, KEYS[k + 2]) then
    return { 'revoked' }
  end
  redis.call('SET', KEYS[k + 1], line('USED', ARGV[a + 1], record.issued, record.expires) .. record.payload, 'PX', ARGV[a + 2])
  return { 'consumed', record.issued, record.payload }
end)
