-- Records a transaction: itself and its place in the index, both or neither. Where both may be named in one call.
--
-- KEYS  1 the transaction   2 the index of transactions
-- ARGV  1 id of the transaction   2 the transaction   3 its time, ms
-- Returns { 'filed' } if it is there now as it came, { 'other', the transaction that has the id, its time in the index or '' }, or { what is in the
--         way }: 'transaction' 'index'
-- @keys 2
-- @resend safe
-- @include stripe402/damage

local stored = redis.pcall('GET', KEYS[1])
if is_error(stored) then
  return is_wrong_type(stored) and { 'transaction' } or stored
end
if stored and stored ~= ARGV[2] then
  local score = redis.pcall('ZSCORE', KEYS[2], ARGV[1])
  if is_error(score) then
    return is_wrong_type(score) and { 'index' } or score
  end
  return { 'other', stored, score or '' }
end
-- The first write is the one that can fail. What is indexed already stays where it is.
local indexed = redis.pcall('ZADD', KEYS[2], 'NX', ARGV[3], ARGV[1])
if is_error(indexed) then
  return is_wrong_type(indexed) and { 'index' } or indexed
end
if not stored then
  redis.call('SET', KEYS[1], ARGV[2])
end
return { 'filed' }
