-- What Redis says of some fields of a sale's stock, and of the state that they belong to, all as of one moment, for who compares it with the
-- journal. Changes nothing.
--
-- KEYS  1 the sale   2 its stock
-- ARGV  1… the fields: up to 1,000, about 1 ms
-- Returns { why, core, how many fields there are in all, { value, … }, { pending entry, … } }
--         why: trusted · missing · unreadable · incarnation, as `wallet_inspect` · stock: it is not of the sale's life. Nothing else then.
--         A field that is not there is nil, and so is a pending entry that is not.
-- @keys 2
-- @resend safe
-- @readonly
-- @include wallet/server
-- @include wallet/entry
-- @include wallet/state
-- @include wallet/recent

local PENDING_MAX = 4096

local function inspect(key, stock_key)
  local w, core = read_core(key)
  if not w then
    return { redis.call('EXISTS', key) == 0 and 'missing' or 'unreadable' }
  end
  if w.life ~= incarnation() then
    return { 'incarnation' }
  end
  if redis.pcall('HGET', stock_key, 'epoch') ~= digits(w.epoch) then
    return { 'stock' }
  end
  local values = #ARGV > 0 and redis.call('HMGET', stock_key, unpack(ARGV)) or {}
  track(w, key, {})
  return { 'trusted', core, redis.call('HLEN', stock_key), values, entries_after(w, w.acked, PENDING_MAX) }
end

-- Numbers that nobody can work with: of a ring, or of an acknowledged seq, that never was.
local fine, answer = pcall(inspect, KEYS[1], KEYS[2])
return fine and answer or { 'unreadable' }
