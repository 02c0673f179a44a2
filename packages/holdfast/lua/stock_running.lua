-- An open checkout in a sale, by its hold, or the one that a buyer has running. Changes nothing.
--
-- KEYS  1 the sale   2 its stock
-- ARGV  1 least epoch to trust   2 what to look for: u:<buyer> or c:<hold>
-- Returns { 'trusted', the hold, when it expires, what is in it }, the last three only where there is one; otherwise { why it is not to be trusted }
-- @keys 2
-- @resend safe
-- @readonly
-- @include wallet/server
-- @include wallet/entry
-- @include wallet/state

local field = ARGV[2]
local w, why = read_wallet(KEYS[1], CORE_ALONE, incarnation(), tonumber(ARGV[1]))
if not w then
  return { why }
end
if not open_stock(w, KEYS[2], { field }) then
  return { 'stock' }
end
local code = string.match(field, '^c:(.*)$')
if not code then
  code = read_buyer(w, string.sub(field, 3)).running
end
local hold = code ~= '' and read_hold(w, code)
if not hold then
  return { 'trusted' }
end
-- Where somebody has damaged it this fails, and the journal is asked.
return { 'trusted', code, digits(hold.expires), read_checkout(w, code).words }
