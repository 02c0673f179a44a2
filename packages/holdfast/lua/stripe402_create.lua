-- Creates a client if there is none. A hash without a clientId is no client: older software left it behind when it changed the balance of
-- somebody unknown. If nothing but a zero stands in it, the client takes its place; what holds more than that is not written over.
--
-- KEYS  1 the client
-- ARGV  1 clientId   2 stripeCustomerId   3 balance   4 currency   5 createdAt   6 updatedAt
-- Returns 'created', 'there', or what is in the way: 'type' 'ghost'
-- @keys 1
-- @resend safe
-- @include stripe402/damage

local held = redis.pcall('HGETALL', KEYS[1])
if is_error(held) then
  return is_wrong_type(held) and 'type' or held
end
local in_the_way = false
for i = 1, #held, 2 do
  local field, value = held[i], held[i + 1]
  if field == 'clientId' and value ~= '' then
    return 'there'
  end
  local is_empty = field == 'updatedAt' or (field == 'balance' and value == '0')
  in_the_way = in_the_way or not is_empty
end
if in_the_way then
  return 'ghost'
end
redis.call('HSET', KEYS[1], 'clientId', ARGV[1], 'stripeCustomerId', ARGV[2], 'balance', ARGV[3],
  'currency', ARGV[4], 'createdAt', ARGV[5], 'updatedAt', ARGV[6])
return 'created'
