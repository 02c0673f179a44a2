-- Installs a wallet's state, loaded from Postgres under a raised epoch. Only on a raise whose success the caller saw, and only once:
-- never resent, because evicted in between and installed twice would be two lives under one epoch.
--
-- Entries of the state before that were acknowledged from memory and are not in the journal are decided again, by key, on what
-- Postgres says, unless it can't store them; what no longer fits is reported. Where that may happen, the last entries of the journal come
-- along: who repeats one of their keys must not be told "yes" for something that is decided a second time, and refused by the journal later.
--
-- KEYS  1 the shard's agenda   2 the wallet   3 the lease   4 its stock, which only a sale has   5 where that was set aside, by `stock_stage`
--       6 one that never exists: so no node of a Cluster runs this while the slot is on the move, where naming a key that was deleted is an error,
--         in the middle of it
-- ARGV  1 name on the agenda   2 who asks   3 deadline, ms of the clock of   4 the server's life that was looked at
--       5 after how long somebody should look after pending entries, ms   6 after how long a wallet leaves that nobody uses, ms
--       7 epoch   8 seq   9 head   10 at   11 available   12 reserved   13 limit   14 status   15 due   16 since   17 memory   18 clock
--       19 is it a sale?   20 how many holds   21 how many fields of its stock were set aside   22 how many of the journal's last entries
--       for each hold: id, its five numbers
--       for each of those entries, oldest first: the mark of its key, its bytes
--       then the keys among the pending entries that the journal has already, or will never take
-- Returns { 'installed', seq, key, code, key, code, … } (what was acknowledged from memory and is lost, and why)
--         { 'newer', epoch } · { 'late' } · { 'incomplete' }: not all of its stock is there
-- @keys 6
-- @resend never
-- @include wallet/server
-- @include wallet/entry
-- @include wallet/state
-- @include wallet/recent
-- @include wallet/decide

local life = incarnation()
if life ~= ARGV[4] or server_clock() > tonumber(ARGV[3]) then
  return { 'late' }
end

local epoch = tonumber(ARGV[7])
local old = read_core(KEYS[2])
if old and old.epoch >= epoch then
  return { 'newer', digits(old.epoch) }
end

local hold_count = tonumber(ARGV[20])
local field_count = tonumber(ARGV[21])
local recent_count = tonumber(ARGV[22])
local final = {}
for i = 23 + 2 * hold_count + 2 * recent_count, #ARGV do
  final[ARGV[i]] = true
end

-- Evicted, or flushed while it was being set aside. The key is of this process and this epoch alone: what is there in this number is all of it.
if field_count > 0 and redis.call('HLEN', KEYS[5]) ~= field_count then
  return { 'incomplete' }
end

-- What a command was can be read off its entry: `params` are its kind and numbers; those of a session are read by the machine. (Never
-- a refund: those are not acknowledged from memory, because they rest on facts of the journal.)
local function command_of(entry, mark)
  local words = {}
  for word in string.gmatch(entry.params, '%S+') do
    words[#words + 1] = word
  end
  local kind = words[1]
  local c = {
    kind = kind, key = entry.key, mark = mark, params = entry.params, hold = entry.hold, amount = entry.amount, ttl = 0, beyond = false, of = entry.of,
    counter = entry.counter, metadata = entry.metadata, at = entry.at, memory = true,
  }
  if kind == 'hold' or kind == 'extend' then
    c.ttl = tonumber(words[3])
  elseif kind == 'capture' or kind == 'settle' then
    c.beyond = words[3] == 'available'
  elseif kind == 'checkout' then
    -- It may have joined a checkout that is no more: then it makes one of its own, under its own name.
    c.hold = entry.key
  end
  return c
end

local pending = {}
local reply = { 'installed', '' }
local function recall_memory()
  track(old, KEYS[2], {})
  local entries = entries_after(old, old.acked, 4096)
  -- The journal may end with one of them, appended since somebody looked: then it has those before it as well.
  local ends = tonumber(ARGV[8]) - old.acked
  local known, last = pcall(read_entry, entries[ends])
  for i = known and last.hash == ARGV[9] and ends + 1 or 1, #entries do
    if was_memory(old, old.acked + i) then
      local fine, entry = pcall(read_entry, entries[i])
      -- What somebody has damaged can't be decided again, and must not keep the wallet from being loaded.
      if not fine or redis.sha1hex(string.sub(entries[i], 1, -1 - HASH_AND_BOUNDS)) ~= entry.hash then
        reply[#reply + 1] = ''
        reply[#reply + 1] = 'damaged'
      elseif not final[entry.key] then
        pending[#pending + 1] = command_of(entry, mark_at(old, entry.seq))
      end
    end
  end
end
-- Numbers that nobody can work with: of a ring, or of an acknowledged seq, that never was.
if old and not pcall(recall_memory) then
  pending = {}
end

local w = track({
  epoch = epoch, life = life, seq = tonumber(ARGV[8]), head = ARGV[9], at = tonumber(ARGV[10]),
  available = tonumber(ARGV[11]), reserved = tonumber(ARGV[12]), limit = tonumber(ARGV[13]), status = ARGV[14],
  due = tonumber(ARGV[15]), since = tonumber(ARGV[16]), open = hold_count, acked = tonumber(ARGV[8]), floor = tonumber(ARGV[8]),
  agenda = 0, memory = ARGV[17] == '1', has_stock = ARGV[19] == '1', clock = tonumber(ARGV[18]), ring = RING, recent = '',
  -- There is no second call for what was acknowledged: all that is due expires in this one.
  expire_max = math.huge,
}, KEYS[2], {})
for i = 1, hold_count do
  local amount, captured, left, expires, refunded = string.match(ARGV[22 + 2 * i], '^(%S+) (%S+) (%S+) (%S+) (%S+)$')
  put(w, 'h:' .. ARGV[21 + 2 * i], format_hold({
    amount = tonumber(amount), captured = tonumber(captured), left = tonumber(left), expires = tonumber(expires),
    refunded = tonumber(refunded),
  }))
end

local marks = {}
for i = 1, recent_count do
  local at = 21 + 2 * hold_count + 2 * i
  local seq = w.seq - recent_count + i
  marks[i] = ARGV[at] .. '-'
  remember(w, seq, ARGV[at + 1])
  write(w, entry_field(w, seq), ARGV[at + 1])
end
w.recent = table.concat(marks)

-- From here on nothing may fail: what was acknowledged from memory is nowhere else until it is written again.
local holder = redis.pcall('GET', KEYS[3])
if holder == ARGV[2] or type(holder) == 'table' then
  redis.call('DEL', KEYS[3])
end
redis.call('DEL', KEYS[2])
redis.call('UNLINK', KEYS[4])

if w.has_stock then
  w.stock = new_stock(KEYS[4])
  if field_count > 0 then
    redis.call('RENAME', KEYS[5], KEYS[4])
  end
  stock_put(w, 'epoch', digits(epoch))
end

for i = 1, #pending do
  local c = pending[i]
  -- At the time it was acknowledged, not at that of loading: a hold that has run out since had not then.
  local fine, answer = pcall(decide, w, c, math.max(c.at, w.at))
  if not fine then
    answer = { 'damaged' }
  end
  if answer then
    reply[#reply + 1] = c.key
    reply[#reply + 1] = answer[2] or answer[1]
  end
end
reply[2] = digits(w.seq)
w.clock = math.max(w.clock, w.at)
-- Its last entry may be old: it stays as long as if it had one now.
write_wallet(w, KEYS[1], ARGV[1], w.clock + tonumber(w.seq > w.acked and ARGV[5] or ARGV[6]))
return reply
