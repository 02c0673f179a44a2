-- Adds to balances and deducts from them, each change by itself: one that is refused leaves those beside it alone. Nothing remembers what
-- was done, so a call that may have run is never sent again.
--
-- KEYS  1+ clients, each once
-- ARGV  1 number of changes   2 updatedAt   then for each key: how many changes, and these: +n or -n
-- Returns for each change the balance after it in digits or why there is none, with blanks between them: 'unknown' 'short' 'over' 'type' 'balance'
-- @keys 1+
-- @batch 64
-- @resend never
-- @include stripe402/balance

local answers = {}
local at = 3
for i = 1, #KEYS do
  local balance, why = read_balance(KEYS[i])
  local changed = false
  local last = at + tonumber(ARGV[at])
  for j = at + 1, last do
    local after, refused = nil, why
    if balance then
      after, refused = balance_after(balance, ARGV[j])
    end
    if after then
      balance = after
      changed = true
    end
    answers[#answers + 1] = after and digits(after) or refused
  end
  if changed then
    write_balance(KEYS[i], balance, ARGV[2])
  end
  at = last + 1
end
return table.concat(answers, ' ')
