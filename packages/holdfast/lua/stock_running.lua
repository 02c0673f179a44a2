-- The running checkout of a buyer in a sale. Changes nothing.
--
-- KEYS  1 the sale   2 its stock
-- ARGV  1 least epoch to trust   2 the buyer
-- Returns { 'trusted', the hold, when it expires, what is in it }, the last three only where one is running; otherwise { why it is not to be trusted }
-- @keys 2
-- @resend safe
-- @readonly
-- @include wallet/server
-- @include wallet/entry
-- @include wallet/state

local field = 'u:' .. ARGV[2]
local w, why = read_wallet(KEYS[1], CORE_ALONE, incarnation(), tonumber(ARGV[1]))
if not w then
  return { why }
end
if not open_stock(w, KEYS[2], { field }) then
  return { 'stock' }
end
local _, running = read_buyer(w, ARGV[2])
local hold = running ~= '' and read_hold(w, running)
if not hold then
  return { 'trusted' }
end
return { 'trusted', running, digits(hold.expires), stock_get(w, 'c:' .. running) }
