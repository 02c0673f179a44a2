-- Adds to balances and deducts from them, each change once for its key: what was done is remembered for a time and answered again. A
-- refusal is not remembered.
--
-- KEYS  for each change: the client, and what its key remembers
-- ARGV  1 number of changes   2 updatedAt   3 for how long to remember, ms   then for each: +n or -n
-- Returns for each change the balance after it in digits or why there is none, with blanks between them: 'unknown' 'short' 'over' 'conflict'
--         'type' 'balance' 'memory'
-- @keys 2+
-- @batch 64
-- @resend safe
-- @include stripe402/balance
-- @include stripe402/memory

local function change_once(client, memory, change)
  local remembered = redis.pcall('GET', memory)
  if is_error(remembered) then
    return is_wrong_type(remembered) and 'memory' or 'failed'
  end
  if remembered then
    local after, why = recall(remembered, change)
    return after or why
  end
  local balance, missing = read_balance(client)
  if not balance then
    return missing
  end
  local after, written = balance_after(balance, change)
  if after then
    redis.call('SET', memory, remembered_as(change, written), 'PX', ARGV[3])
    write_balance(client, written, ARGV[2])
  end
  return written
end

local answers = {}
for i = 1, #KEYS / 2 do
  answers[i] = change_once(KEYS[2 * i - 1], KEYS[2 * i], ARGV[i + 3])
end
return table.concat(answers, ' ')
