-- Looks at tokens without using them up.
--
-- KEYS  for each: the token   the generation of its subject
-- ARGV  1 number of them
-- Returns for each {when it was issued, when it expires, ms, the payload}, or {} when it can't be used
-- @keys 2+
-- @batch 64
-- @resend safe
-- @readonly
-- @include primitives/each
-- @include primitives/token
-- @include token/record

return each(2, 0, function(k)
  local record = read_record(KEYS[k + 1])
  if not record or not is_live(record, KEYS[k + 2]) then
    return {}
  end
  return { record.issued, record.expires, record.payload }
end)
