-- Decides a batch of commands for wallets of one slot (on a single node: of any shards). Each accepted command becomes one pending entry in the same atomic step.
--
-- KEYS  1…   the agendas of the shards, then the wallets, each once
-- ARGV  1    how many commands
--       2    the caller's clock, ms            3  how far ahead of it the server's clock may be believed, ms
--       4    after how long somebody should look after a pending entry, ms
--       5    how many pending entries a wallet may have
--       6    how many agendas
--       then for each wallet   name on the agenda, number of its agenda, least epoch to trust, epoch of the next two, acknowledged seq, seq up to which the caller has entries
--       then for each command  wallet (1…), kind, key, params, hold, amount, ttl, beyond, of, charge, facts, counter, metadata,
--                              deadline, by how much the wallet's own time may be ahead of it, durability
-- Returns { server's clock, a reply for each wallet …, a reply for each command … }
--       wallet   {epoch, acked, entry, entry, …}: all pending entries that the caller does not have yet, oldest first
--                {'untrusted', why, epoch}
--       command  {'ok', seq} · {'replay', seq, entry} · {'no', epoch, seq, head, code, fact, value, …}
--                {'conflict', epoch, seq, head} · {'seen'} (the result is gone from here; the journal has it) · {'late', clock}
--                {'more'} · {'facts'} · {'touched', due, epoch, seq} · {'full'} · {'unmarked'} · {'untrusted'} · {'error', text}
--
-- Running it twice is safe: the key of a command finds the first run's result. It is not resent all the same: whoever tells a caller
-- "no" must know that no copy is still under way that could be decided otherwise.
-- @keys 2+
-- @resend never
-- @batch 64
-- @include wallet/entry
-- @include wallet/state
-- @include wallet/decide

local WALLET_ARGS = 6
local COMMAND_ARGS = 16

local command_count = tonumber(ARGV[1])
local caller_clock = tonumber(ARGV[2])
local ahead_max = tonumber(ARGV[3])
local help_after = tonumber(ARGV[4])
local pending_max = tonumber(ARGV[5])
local agenda_count = tonumber(ARGV[6])
local wallet_count = #KEYS - agenda_count
local first_command = 6 + wallet_count * WALLET_ARGS

local time = redis.call('TIME')
local clock = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

local fields = {}
for i = 1, wallet_count do
  fields[i] = {}
end
local commands = {}
for i = 1, command_count do
  local a = first_command + (i - 1) * COMMAND_ARGS
  local c = {
    wallet = tonumber(ARGV[a + 1]), kind = ARGV[a + 2], key = ARGV[a + 3], params = ARGV[a + 4], hold = ARGV[a + 5],
    amount = tonumber(ARGV[a + 6]), ttl = tonumber(ARGV[a + 7]), beyond = ARGV[a + 8] == '1', of = tonumber(ARGV[a + 9]),
    charge = tonumber(ARGV[a + 10]), facts = ARGV[a + 11], counter = ARGV[a + 12], metadata = ARGV[a + 13],
    deadline = tonumber(ARGV[a + 14]), ahead = tonumber(ARGV[a + 15]), memory = ARGV[a + 16] == 'memory',
  }
  commands[i] = c
  local wanted = fields[c.wallet]
  if c.key ~= '' then
    wanted[#wanted + 1] = 'k:' .. c.key
  end
  if c.hold ~= '' then
    wanted[#wanted + 1] = 'h:' .. c.hold
  end
end

local life = incarnation()
local wallets = {}
local distrust = {}
for i = 1, wallet_count do
  local a = 6 + (i - 1) * WALLET_ARGS
  local w, why, epoch = read_wallet(KEYS[agenda_count + i], fields[i], life, tonumber(ARGV[a + 3]))
  if w then
    w.name = ARGV[a + 1]
    w.agenda_key = KEYS[tonumber(ARGV[a + 2])]
    w.known = 0
    if tonumber(ARGV[a + 4]) == w.epoch then
      w.acked = math.min(w.seq, math.max(w.acked, tonumber(ARGV[a + 5])))
      w.known = tonumber(ARGV[a + 6])
    end
    wallets[i] = w
  else
    distrust[i] = { 'untrusted', why, digits(epoch) }
  end
end

-- The answer to a key that was seen before, or nil.
local function recall(w, c)
  local seen = get(w, 'k:' .. c.key)
  if not seen then
    if c.kind == 'hold' and get(w, 'h:' .. c.key) then
      return { 'seen' }
    end
    return nil
  end
  local seq = tonumber(string.match(seen, '^%S+'))
  local text = entry_text(w, seq)
  if not text then
    return { 'seen' }
  end
  -- A refund's hold follows from the charge that its params name, and the caller may not have read that yet.
  if field_of(text, 20) ~= c.params or (c.kind ~= 'refund' and field_of(text, 11) ~= c.hold) then
    return { 'conflict', field_of(text, 1), digits(seq), field_of(text, 23) }
  end
  return { 'replay', digits(seq), text }
end

local function attempt(c)
  local w = wallets[c.wallet]
  if not w then
    return { 'untrusted' }
  end
  if c.key ~= '' then
    local answer = recall(w, c)
    if answer then
      return answer
    end
  end
  -- The wallet's time counts too, because this server's clock may be behind that of the one before it. Where it is ahead for good, the
  -- caller says by how much; what this server's clock says of a call that was held up stays true all the same.
  local latest = math.max(clock, w.clock - c.ahead)
  if latest > c.deadline then
    return { 'late', digits(math.max(clock, w.clock)) }
  end
  -- One step a call: sorting thousands of due holds for every command of a batch would keep everybody else waiting.
  if w.more then
    return { 'more' }
  end
  if c.memory and w.memory ~= '1' then
    return { 'unmarked' }
  end
  if w.seq - w.acked >= pending_max then
    return { 'full' }
  end
  local now = math.max(math.min(clock, caller_clock + ahead_max), w.clock)
  w.clock = now
  w.touched = true
  local answer = decide(w, c, now)
  if answer[1] == 'no' then
    table.insert(answer, 2, digits(w.epoch))
    table.insert(answer, 3, digits(w.seq))
    table.insert(answer, 4, w.head)
  elseif answer[1] == 'more' then
    w.more = true
  elseif answer[1] == 'touched' then
    answer[2] = digits(w.due)
    answer[3] = digits(w.epoch)
    answer[4] = digits(w.seq)
  elseif answer[1] == 'ok' and c.memory then
    w.changed['k:' .. c.key] = answer[2] .. ' m'
  end
  return answer
end

local reply = { digits(clock) }
local answers = {}
for i = 1, command_count do
  local c = commands[i]
  -- A command that stumbles takes its wallet's part of the batch with it, and nobody else's: nothing is written before the end.
  local fine, answer = pcall(attempt, c)
  if not fine then
    distrust[c.wallet] = { 'untrusted', 'error', digits(wallets[c.wallet].epoch) }
    wallets[c.wallet] = nil
    answer = { 'error', tostring(answer) }
  end
  answers[i] = answer
end

for i = 1, wallet_count do
  local w = wallets[i]
  if w then
    local entries = entries_after(w, math.max(w.acked, w.known), pending_max + EXPIRE_MAX)
    if w.touched then
      write_wallet(w, w.agenda_key, w.name, w.clock + help_after)
    end
    table.insert(entries, 1, digits(w.acked))
    table.insert(entries, 1, digits(w.epoch))
    reply[#reply + 1] = entries
  else
    reply[#reply + 1] = distrust[i]
  end
end
for i = 1, command_count do
  reply[#reply + 1] = wallets[commands[i].wallet] and answers[i]
    or (answers[i][1] == 'error' and answers[i] or { 'untrusted' })
end
return reply
