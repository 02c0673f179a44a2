-- A client's balance is a field of its hash, written in digits. What else may stand there was not written by stripe402 as it should
-- be, and is reported: a guess at what was meant would be somebody's money.

-- 2^53 - 1: up to here Lua, JavaScript and the digits agree.
local BALANCE_MAX = 9007199254740991

-- Only this prints every integer of a double exactly.
local function digits(number)
  return string.format('%.0f', number)
end

-- The balance as a number; or nil, and why there is none.
local function read_balance(client)
  local held = redis.pcall('HMGET', client, 'clientId', 'balance')
  if held.err then
    return nil, 'type'
  end
  if not held[1] or held[1] == '' then
    return nil, 'unknown'
  end
  local balance = tonumber(held[2] or '')
  -- Asked this way round, no comparison is true of a NaN. Digits that do not come out the same were no plain integer.
  if balance and balance <= BALANCE_MAX and balance >= -BALANCE_MAX and held[2] ~= '-0' and digits(balance) == held[2] then
    return balance
  end
  return nil, 'balance'
end

-- What a change, +n or -n, makes of a balance; or nil, and why it is refused. Only a deduction can be too much for what is there: a
-- balance that older software brought below zero can be topped up.
local function balance_after(balance, change)
  local after = balance + tonumber(change)
  if after > BALANCE_MAX then
    return nil, 'over'
  end
  if after < 0 and string.byte(change) == 45 then
    return nil, 'short'
  end
  return after
end

local function write_balance(client, balance, updated_at)
  redis.call('HSET', client, 'balance', digits(balance), 'updatedAt', updated_at)
end

-- What is remembered of a change that was done: "+500:49500", the change and the balance after it. Returns the balance after in digits;
-- or nil, and why not.
local function recall(remembered, change)
  local was, after = string.match(remembered, '^([+-]%d+):(-?%d+)$')
  if not was then
    return nil, 'memory'
  end
  if was ~= change then
    return nil, 'conflict'
  end
  return after
end
