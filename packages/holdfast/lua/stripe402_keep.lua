-- Keeps a transaction, if none has its id yet. Where its index lies in another slot of a Cluster.
--
-- KEYS  1 the transaction
-- ARGV  1 the transaction; empty: only look
-- Returns the transaction that is there now, empty: none; or nil: the key is no string
-- @keys 1
-- @resend safe
-- @include stripe402/damage

local stored = redis.pcall('GET', KEYS[1])
if is_error(stored) then
  return not is_wrong_type(stored) and stored
end
if not stored and ARGV[1] ~= '' then
  redis.call('SET', KEYS[1], ARGV[1])
end
return stored or ARGV[1]
