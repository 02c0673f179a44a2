-- A client's balance is a field of its hash, written in digits. What else may stand there was not written by stripe402 as it should
-- be, and is reported: a guess at what was meant would be somebody's money.

-- @include stripe402/damage

-- 2^53 - 1: up to here Lua, JavaScript and the digits agree.
local BALANCE_MAX = 9007199254740991
-- Locals, and one format a change: a third of the time of this script went into looking names up and printing the same number again.
local tonumber, byte, format = tonumber, string.byte, string.format

-- The balance as a number; or nil, and why there is none.
local function read_balance(client)
  local held = redis.pcall('HMGET', client, 'clientId', 'balance')
  local id, written = held[1], held[2]
  if not id or id == '' then
    if held.err then
      return nil, is_wrong_type(held) and 'type' or 'failed'
    end
    return nil, 'unknown'
  end
  local balance = written and tonumber(written)
  -- Asked this way round, no comparison is true of a NaN. Digits that do not come out the same were no plain integer. Only %.0f prints
  -- every integer of a double exactly.
  if balance and balance <= BALANCE_MAX and balance >= -BALANCE_MAX and format('%.0f', balance) == written and written ~= '-0' then
    return balance
  end
  return nil, 'balance'
end

-- What a change, +n or -n, makes of a balance, as a number and in digits; or nil, and why it is refused. Only a deduction can be too much
-- for what is there: a balance that older software brought below zero can be topped up.
local function balance_after(balance, change)
  local after = balance + tonumber(change)
  if after < 0 and byte(change) == 45 then
    return nil, 'short'
  end
  if after > BALANCE_MAX then
    return nil, 'over'
  end
  return after, format('%.0f', after)
end

local function write_balance(client, written, updated_at)
  redis.call('HSET', client, 'balance', written, 'updatedAt', updated_at)
end
