-- Adds to balances and deducts from them, each change by itself: one that is refused leaves those beside it alone. Nothing remembers what
-- was done, so a call that may have run is never sent again.
--
-- KEYS  1+ clients, each once
-- ARGV  1 number of changes   2 updatedAt   then for each key: its change, +n or -n; or *3, and three of them
-- Returns for each change the balance after it in digits or why there is none, with blanks between them: 'unknown' 'short' 'over' 'type' 'balance'
-- @keys 1+
-- @batch 64
-- @resend never
-- @include stripe402/balance

local answers, count = {}, 0
local at = 3
for i = 1, #KEYS do
  local client = KEYS[i]
  local balance, why = read_balance(client)
  local held = nil
  local last = at
  if byte(ARGV[at]) == 42 then
    last = at + tonumber(string.sub(ARGV[at], 2))
    at = at + 1
  end
  for j = at, last do
    count = count + 1
    if not balance then
      answers[count] = why
    else
      local after, written = balance_after(balance, ARGV[j])
      answers[count] = written
      if after then
        balance, held = after, written
      end
    end
  end
  if held then
    write_balance(client, held, ARGV[2])
  end
  at = last + 1
end
return table.concat(answers, ' ')
