-- Decides a batch of commands for wallets of one slot (on a single node: of any shards). Each accepted command becomes one pending entry in the same atomic step.
--
-- KEYS  1…   the agendas of the shards, then the wallets, each once, then the stock of those that are sales
-- ARGV  1    how many commands
--       2    all the rest, packed (src/sequencer/message.ts writes it): the caller's clock (ms), how far ahead of it the server's clock may
--            be believed (ms), after how long somebody should look after a pending entry (ms), how many pending entries a wallet may have,
--            how many agendas, how many wallets, the life of the server by whose clock the deadlines are
--            then for each wallet   numbers of the keys of its agenda and its stock (0: it has none), name on the agenda, least epoch to trust, epoch of the next two, acknowledged seq,
--                                   seq up to which the caller has entries
--            then for each command  wallet (1…), flags, kind, key, its mark, params, hold, counter, metadata, amount, ttl, deadline; for a refund also
--                                   seq and size of the charge, and with facts those: epoch, seq, refunded, is the hold closed, charged to it, refunded of that
-- Returns one packed string: the server's clock and its life, then for each wallet and each command
--       wallet   epoch, acked, how many entries, and all pending entries that the caller does not have yet, oldest first; a missing one
--                ends the list                                                        or: untrusted, why, epoch
--       command  accepted, seq · replay (or: of what was acknowledged from memory), entry · words:
--                no epoch seq head code fact value … · conflict epoch seq head · seen (the result is gone from here; the journal has it)
--                late · more · facts · touched due epoch seq · full · unmarked · untrusted · error text
--
-- One string in and one out: a thousand arguments and nested replies cost both sides more than the decisions themselves.
--
-- Running it twice is safe: the key of a command finds the first run's result. It is not resent all the same: whoever tells a caller
-- "no" must know that no copy is still under way that could be decided otherwise.
-- @keys 2+
-- @resend never
-- @batch 64
-- @include wallet/server
-- @include wallet/entry
-- @include wallet/state
-- @include wallet/recent
-- @include wallet/decide

local HEADER = '<ddddHHc32'
local WALLET = '<HHHc0dddd'
local COMMAND = '<HBBc0Hc0c4Hc0Hc0Hc0I4c0ddd'
local CHARGE = '<dd'
local FACTS = '<dddBdd'
local BEYOND, MEMORY, REFUND, KNOWN = 1, 2, 4, 8

local TRUSTED, UNTRUSTED = 0, 1
local ACCEPTED, REPLAY, WORDS, REPLAY_MEMORY = 0, 1, 2, 3

local command_count = tonumber(ARGV[1])
local message = ARGV[2]
local caller_clock, ahead_max, help_after, pending_max, agenda_count, wallet_count, told_life, position = unpack_bytes(HEADER, message)

local clock = server_clock()

local told = {}
for i = 1, wallet_count do
  local agenda, stock, name, epoch_min, epoch, acked, known
  agenda, stock, name, epoch_min, epoch, acked, known, position = unpack_bytes(WALLET, message, position)
  told[i] = { agenda = agenda, stock = stock, name = name, epoch_min = epoch_min, epoch = epoch, acked = acked, known = known }
end

local function has(flags, flag)
  return flags % (2 * flag) >= flag
end

local commands = {}
for i = 1, command_count do
  local wallet, flags, kind, key, mark, params, hold, counter, metadata, amount, ttl, deadline
  wallet, flags, kind, key, mark, params, hold, counter, metadata, amount, ttl, deadline, position =
    unpack_bytes(COMMAND, message, position)
  local c = {
    wallet = wallet, kind = kind, key = key, mark = mark, params = params, hold = hold, counter = counter, metadata = metadata,
    amount = amount, ttl = ttl, deadline = deadline, beyond = has(flags, BEYOND), memory = has(flags, MEMORY), of = 0,
  }
  if has(flags, REFUND) then
    c.of, c.charge, position = unpack_bytes(CHARGE, message, position)
  end
  if has(flags, KNOWN) then
    local epoch, seq, refunded, closed, charged, hold_refunded
    epoch, seq, refunded, closed, charged, hold_refunded, position = unpack_bytes(FACTS, message, position)
    c.facts = { epoch = epoch, seq = seq, refunded = refunded, closed = closed == 1, charged = charged, hold_refunded = hold_refunded }
  end
  commands[i] = c
  local t = told[wallet]
  -- A checkout makes its hold, or goes into another.
  if kind ~= 'checkout' then
    local wanted = t.fields
    if wanted then
      wanted[#wanted + 1] = 'h:' .. hold
    else
      t.fields = { 'core', 'h:' .. hold }
    end
  end
  if t.stock > 0 then
    t.stock_fields = t.stock_fields or {}
    -- What can't be read stumbles when its turn comes, and takes no other wallet along.
    pcall(stock_fields, c, t.stock_fields)
  end
end

local life = incarnation()
local wallets = {}
local distrust = {}
for i = 1, wallet_count do
  local t = told[i]
  local w, why, epoch = read_wallet(KEYS[agenda_count + i], t.fields or CORE_ALONE, life, t.epoch_min)
  if w and w.has_stock and not open_stock(w, KEYS[t.stock], t.stock_fields or {}) then
    w, why, epoch = nil, 'stock', w.epoch
  end
  if w then
    w.name = t.name
    w.agenda_key = KEYS[t.agenda]
    w.known = 0
    if t.epoch == w.epoch then
      w.acked = math.min(w.seq, math.max(w.acked, t.acked))
      w.known = t.known
    end
    wallets[i] = w
  else
    distrust[i] = { why, epoch }
  end
end

-- The answer to a key that was seen before, or nil; and the entry, where that is the answer.
local function recall(w, c)
  local bytes, memory = find_entry(w, c)
  if not bytes then
    if (c.kind == 'hold' or c.kind == 'meter') and get(w, 'h:' .. c.hold) then
      return { 'seen' }
    end
    -- What left the ring was acknowledged.
    if c.kind == 'checkout' and w.stock and stock_get(w, read_order(c).key_field) then
      return { 'seen' }
    end
    return nil
  end
  local entry = read_entry(bytes)
  -- A refund's hold follows from the charge that its params name, and the caller may not have read that yet. That of a checkout may be the
  -- one that was running.
  if entry.params ~= c.params or (c.kind ~= 'refund' and c.kind ~= 'checkout' and entry.hold ~= c.hold) then
    return { 'conflict', digits(entry.epoch), digits(entry.seq), entry.hash }
  end
  return memory and REPLAY_MEMORY or REPLAY, bytes
end

local function attempt(c)
  local w = wallets[c.wallet]
  if not w then
    return { 'untrusted' }
  end
  if c.key ~= '' then
    local answer, entry = recall(w, c)
    if answer then
      return answer, entry
    end
  end
  -- A deadline by the clock of another server says nothing here: who was promoted may be minutes behind.
  if told_life ~= life or clock > c.deadline then
    return { 'late' }
  end
  -- One step a call: sorting thousands of due holds for every command of a batch would keep everybody else waiting.
  if w.more then
    return { 'more' }
  end
  if c.memory and not w.memory then
    return { 'unmarked' }
  end
  if w.seq - w.acked >= pending_max then
    return { 'full' }
  end
  local now = time_of(w, clock, caller_clock, ahead_max)
  w.clock = now
  w.touched = true
  local answer = decide(w, c, now)
  if not answer then
    return ACCEPTED, w.seq
  end
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
  end
  return answer
end

local answers = {}
local details = {}
for i = 1, command_count do
  local c = commands[i]
  -- A command that stumbles takes its wallet's part of the batch with it, and nobody else's: nothing is written before the end.
  local fine, answer, detail = pcall(attempt, c)
  if not fine then
    distrust[c.wallet] = { 'error', wallets[c.wallet].epoch }
    wallets[c.wallet] = nil
    answer = { 'error', tostring(answer) }
  end
  answers[i] = answer
  details[i] = detail
end

local reply = { pack('<dc32', clock, life) }
for i = 1, wallet_count do
  local w = wallets[i]
  if w then
    local entries = entries_after(w, math.max(w.acked, w.known), pending_max + EXPIRE_MAX)
    if w.touched then
      -- Nothing to look after: then it stays on the agenda where it was.
      local wanted = w.clock + help_after
      write_wallet(w, w.agenda_key, w.name, w.seq == w.acked and math.max(wanted, w.agenda) or wanted)
    end
    local count = 0
    while entries[count + 1] do
      count = count + 1
    end
    reply[#reply + 1] = pack('<BddI4', TRUSTED, w.epoch, w.acked, count)
    for n = 1, count do
      reply[#reply + 1] = entries[n]
    end
  else
    local why, epoch = distrust[i][1], distrust[i][2]
    reply[#reply + 1] = pack('<BBc0d', UNTRUSTED, #why, why, epoch)
  end
end
for i = 1, command_count do
  local answer = answers[i]
  local stumbled = type(answer) == 'table' and answer[1] == 'error'
  -- What was accepted before another command of its wallet stumbled was not written either.
  if not wallets[commands[i].wallet] and not stumbled then
    answer = { 'untrusted' }
  end
  if answer == ACCEPTED then
    reply[#reply + 1] = pack('<Bd', ACCEPTED, details[i])
  elseif answer == REPLAY or answer == REPLAY_MEMORY then
    reply[#reply + 1] = pack('<B', answer)
    reply[#reply + 1] = details[i]
  else
    local words = table.concat(answer, '\n')
    reply[#reply + 1] = pack('<BI4c0', WORDS, #words, words)
  end
end
return table.concat(reply)
