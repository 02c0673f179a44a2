-- @include stripe402/balance
-- @include stripe402/memory

-- Decides a move: again, if its id is remembered, otherwise by the balance. Returns 'again' or 'moved' and the balance after in digits, or why
-- it is refused. Writes nothing.
local function decide_move(client, moves, id, change)
  local remembered = redis.pcall('HGET', moves, id)
  if is_error(remembered) then
    return is_wrong_type(remembered) and 'memory' or 'failed'
  end
  if remembered then
    local after, why = recall(remembered, change)
    return why or 'again', after
  end
  local balance, missing = read_balance(client)
  if not balance then
    return missing
  end
  local after, written = balance_after(balance, change)
  if not after then
    return written
  end
  return 'moved', written
end

-- Both are known to be hashes, or not to be there: a script is not rolled back when it breaks half-way.
local function write_move(client, moves, id, change, written, updated_at)
  redis.call('HSET', moves, id, remembered_as(change, written))
  write_balance(client, written, updated_at)
end

-- The balance of a client whose move was recorded by other means, in digits; or why there is none.
local function balance_now(client)
  local balance, missing = read_balance(client)
  return missing or format('%.0f', balance)
end
