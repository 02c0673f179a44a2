-- Reads a part of the index of transactions: by time, and by the bytes of the id where the time is the same, which is the order of a
-- sorted set. Going on behind a place works also when the transaction that stood there is gone.
--
-- KEYS  1 the index of transactions
-- ARGV  1 'oldest' | 'newest'   2 how many at most   3 '1': go on behind a place   4 its time, ms   5 its id
-- Returns { id, time, … } in the order asked for, or nil: the key is no sorted set
-- @keys 1
-- @resend safe
-- @readonly
-- @include stripe402/damage
-- @include primitives/order

-- How many stand before the place, and with it if it is asked for: among those of the same time by halving.
local function rank_of(score, id, inclusive)
  local low = redis.call('ZCOUNT', KEYS[1], '-inf', '(' .. score)
  local high = redis.call('ZCOUNT', KEYS[1], '-inf', score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local member = redis.call('ZRANGE', KEYS[1], middle, middle)[1]
    if is_before(member, id) or (inclusive and member == id) then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

local size = redis.pcall('ZCARD', KEYS[1])
if is_error(size) then
  return not is_wrong_type(size) and size
end
local limit = tonumber(ARGV[2])
if ARGV[1] == 'oldest' then
  local first = ARGV[3] == '1' and rank_of(ARGV[4], ARGV[5], true) or 0
  return redis.call('ZRANGE', KEYS[1], first, first + limit - 1, 'WITHSCORES')
end
local newer = ARGV[3] == '1' and size - rank_of(ARGV[4], ARGV[5], false) or 0
return redis.call('ZREVRANGE', KEYS[1], newer, newer + limit - 1, 'WITHSCORES')
