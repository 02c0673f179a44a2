-- @include stripe402/balance

-- Decides a move: again, if its id is remembered, otherwise by the balance. Returns 'again' and the balance after in digits, 'moved' and the
-- balance after as a number, or why it is refused. Writes nothing.
local function decide_move(client, moves, id, change)
  local remembered = redis.pcall('HGET', moves, id)
  if type(remembered) == 'table' then
    return 'memory'
  end
  if remembered then
    local after, why = recall(remembered, change)
    return why or 'again', after
  end
  local balance, missing = read_balance(client)
  if not balance then
    return missing
  end
  local after, refused = balance_after(balance, change)
  return refused or 'moved', after
end

-- Both are known to be hashes, or not to be there: a script is not rolled back when it breaks half-way.
local function write_move(client, moves, id, change, after, updated_at)
  redis.call('HSET', moves, id, change .. ':' .. digits(after))
  write_balance(client, after, updated_at)
end
