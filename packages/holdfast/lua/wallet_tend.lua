-- Looks after wallets whose time on the agenda has come: takes in what was acknowledged, lets due holds expire, hands out what is
-- pending so that it gets appended, and lets idle wallets leave Redis. Puts each back on the agenda for when it is needed next.
--
-- What is of another life of the server, or a sale without its stock, leaves as well: nobody believes it, and whoever needs the wallet loads
-- it. After a failover that stays so, as wallets are needed and not all at once. But what was acknowledged from memory and may not be in
-- the journal is nowhere else: such a state stays as it is, and whoever is told so has it loaded, which decides that again.
--
-- KEYS  1 the shard's agenda   2… the wallets, then the stock of those that are sales
-- ARGV  1 how many wallets   2 the caller's clock, ms   3 how far ahead of it the server's clock may be believed, ms
--       4 after how long somebody should look after a pending entry, ms   5 after how long an idle wallet leaves, ms
--       then for each wallet: name on the agenda, epoch of the next, acknowledged seq, number of the key of its stock (0: it has none)
-- Returns { server's clock, a reply for each wallet … }: {epoch, acked, entry, …} · {'gone'} (not here, or not to be trusted) · {'left'}
--         {'broken'}: its state can't be worked with, or keeps what was acknowledged from memory in another life; it stays as it is, and on
--         the agenda, and is to be loaded anew
-- @keys 2+
-- @resend safe
-- @batch 64
-- @include wallet/server
-- @include wallet/room
-- @include wallet/entry
-- @include wallet/state
-- @include wallet/recent
-- @include wallet/decide

local PENDING_MAX = 512
local caller_clock = tonumber(ARGV[2])
local ahead_max = tonumber(ARGV[3])
local help_after = tonumber(ARGV[4])
local idle_after = tonumber(ARGV[5])
local clock = server_clock()
local life = incarnation()
local touch = { kind = 'touch', key = '', hold = '' }

local function leave(key, stock, name)
  redis.call('DEL', key)
  if stock > 0 then
    redis.call('UNLINK', KEYS[stock])
  end
  redis.call('ZREM', KEYS[1], name)
end

-- Goes by what the state itself knows to be acknowledged: of what the caller says to be in the journal, Postgres may have lost some since.
local function tend_untrusted(key, stock, name)
  local w = read_core(key)
  if not w then
    redis.call('ZREM', KEYS[1], name)
    return { 'gone' }
  end
  if first_from_memory(track(w, key, {})) then
    -- Until then it should have been loaded.
    enter(KEYS[1], digits(clock + help_after), name)
    return { 'broken' }
  end
  leave(key, stock, name)
  return { 'gone' }
end

local function tend(i)
  local key = KEYS[i + 1]
  local name = ARGV[2 + 4 * i]
  local stock = tonumber(ARGV[5 + 4 * i])
  local w = read_wallet(key, CORE_ALONE, life, 0)
  if not w or (w.has_stock and not open_stock(w, KEYS[stock], {})) then
    return tend_untrusted(key, stock, name)
  end
  if tonumber(ARGV[3 + 4 * i]) == w.epoch then
    w.acked = math.min(w.seq, math.max(w.acked, tonumber(ARGV[4 + 4 * i])))
  end
  -- The last decision, a refusal too: a sale that is sold out is asked all the time, and would be loaded again at once.
  local used_at = math.max(w.at, w.clock)
  local seq = w.seq
  w.clock = time_of(w, clock, caller_clock, ahead_max)
  -- What waits for the journal has a bound, as where commands are decided: holds stay due until some of it has got there.
  local more = w.seq - w.acked < PENDING_MAX and decide(w, touch, w.clock)[1] == 'more'
  local pending = w.seq > w.acked
  if w.seq > seq then
    used_at = w.at
  end
  if not pending and w.clock - used_at >= idle_after then
    leave(key, stock, name)
    return { 'left' }
  end
  local wanted = used_at + idle_after
  if pending then
    wanted = w.clock + help_after
  end
  if more then
    wanted = w.clock
  end
  local reply = { digits(w.epoch), digits(w.acked), unpack(entries_after(w, w.acked, PENDING_MAX)) }
  w.agenda = 0
  -- To be looked after is not to be used.
  w.clock = used_at
  write_wallet(w, KEYS[1], name, wanted)
  return reply
end

-- Before anybody is tended: what the server refuses there would pass for a wallet that is broken.
local refusal = begin_writing(KEYS[1])
if refusal then
  return refusal
end

local reply = { digits(clock) }
for i = 1, tonumber(ARGV[1]) do
  local fine, answer = pcall(tend, i)
  reply[#reply + 1] = fine and answer or { 'broken' }
end
return reply
