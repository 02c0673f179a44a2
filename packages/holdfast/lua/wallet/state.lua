-- The state of a wallet in Redis: one hash, everything in it.
--
--     core        17 words, see below
--     h:<hold>    an open hold: amount captured left expiresAt refunded; empty: closed, swept away with the next pruning
--     e:<seq>     an entry as text. Newer than `acked`: pending, Postgres may not have it. Older: the recent result of its key
--     k:<key>     the seq of the entry that this key made
--     r:<seq>     refunded so far of that entry           (only what this life of the state has touched, until it is swept away with
--     x:<hold>    charged and refunded of a closed hold    its last refund: from then on the journal has to be asked)
--
--     core: epoch incarnation seq head at available reserved limit status due since open acked floor agenda memory clock
--
-- One HMGET reads what a batch needs of a wallet, one HSET writes what it changed: every redis.call costs about 2 µs.

local CORE = '^(%d+) (%x+) (%d+) (%x+) (%d+) (%-?%d+) (%d+) (%d+) (%l+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) ([01]) (%d+)$'

-- The fourth word of a hold.
local EXPIRES = '^%S+ %S+ %S+ (%S+)'

local CLOSES_HOLD = { settle = true, release = true, expire = true }

-- How many acknowledged results stay for replays, and how many may gather above that before they are swept away in bulk.
local RESULTS_KEPT = 32
local RESULTS_SPARE = 32

-- A wallet whose time on the agenda was so long ago may not be on it any more: the agenda is a key of its own, and can be lost alone.
local OVERLOOKED_MS = 60000

-- Lua hands at most some 8,000 values to one call; a wallet that is installed may have more holds than that.
local VALUES_MAX = 4000

-- The identity of this server's life. A restart changes the run id, a promotion the replication id; both are read from the server
-- itself, because what a client believes may be about another server. Read once a call: 4 µs, found by plain search (patterns: 11 µs).
local function incarnation()
  local info = redis.call('INFO', 'server', 'replication')
  local run = string.find(info, 'run_id:', 1, true)
  local replication = string.find(info, 'master_replid:', 1, true)
  return string.sub(info, run + 7, run + 22) .. string.sub(info, replication + 14, replication + 29)
end

local function parse_core(text)
  local epoch, life, seq, head, at, available, reserved, limit, status, due, since, open, acked, floor, agenda, memory, clock =
    string.match(text, CORE)
  if not epoch then
    return nil
  end
  return {
    epoch = tonumber(epoch), life = life, seq = tonumber(seq), head = head, at = tonumber(at),
    available = tonumber(available), reserved = tonumber(reserved), limit = tonumber(limit), status = status,
    due = tonumber(due), since = tonumber(since), open = tonumber(open),
    acked = tonumber(acked), floor = tonumber(floor), agenda = tonumber(agenda), memory = memory, clock = tonumber(clock),
  }
end

-- The core as it stands under a key that may be anything; nil: nothing to be read.
local function read_core(key)
  local text = redis.pcall('HGET', key, 'core')
  if type(text) ~= 'string' then
    return nil, ''
  end
  return parse_core(text), text
end

local function format_core(w)
  return table.concat({
    digits(w.epoch), w.life, digits(w.seq), w.head, digits(w.at), digits(w.available), digits(w.reserved), digits(w.limit),
    w.status, digits(w.due), digits(w.since), digits(w.open), digits(w.acked), digits(w.floor), digits(w.agenda), w.memory,
    digits(w.clock),
  }, ' ')
end

-- Reads a wallet with the extra fields that the batch will ask for. Returns the wallet, or nil and why it can't be trusted. A key that
-- somebody has put something else under is as good as missing: one such wallet must not fail the others of its batch.
local function read_wallet(key, fields, life, epoch_min)
  local values = redis.pcall('HMGET', key, 'core', unpack(fields))
  local w = values[1] and parse_core(values[1])
  if not w then
    return nil, 'missing', 0
  end
  if w.life ~= life then
    return nil, 'incarnation', w.epoch
  end
  if w.epoch < epoch_min then
    return nil, 'epoch', w.epoch
  end
  local loaded = {}
  for i = 1, #fields do
    loaded[fields[i]] = values[i + 1]
  end
  w.key = key
  w.loaded = loaded   -- fields as they stand in Redis; false: not there
  w.changed = {}      -- fields to write, over the loaded ones
  w.entries = {}      -- entries made in this call, by seq
  return w
end

local function get(w, field)
  local value = w.changed[field]
  if value == nil then
    value = w.loaded[field]
  end
  if value == nil then
    value = redis.call('HGET', w.key, field)
    w.loaded[field] = value
  end
  return value
end

local function read_hold(w, id)
  local text = get(w, 'h:' .. id)
  if not text or text == '' then
    return nil
  end
  local amount, captured, left, expires, refunded = string.match(text, '^(%S+) (%S+) (%S+) (%S+) (%S+)$')
  return {
    amount = tonumber(amount), captured = tonumber(captured), left = tonumber(left),
    expires = tonumber(expires), refunded = tonumber(refunded),
  }
end

local function format_hold(hold)
  return digits(hold.amount) .. ' ' .. digits(hold.captured) .. ' ' .. digits(hold.left) .. ' '
    .. digits(hold.expires) .. ' ' .. digits(hold.refunded)
end

-- The open holds that are due, earliest first, and when the next of the others is (0: there is none). Reads the whole hash, so it is
-- only called when something may be due; and reads no more of a hold than its expiry, because there may be thousands of others
-- (one of 1,000 holds due: 1.7 ms, of 10,000: 12 ms; with all of them read and sorted 5 ms and 45 ms).
local function due_holds(w, now)
  local due = {}
  local next_due = 0
  local function consider(field, value)
    local expires = tonumber(string.match(value, EXPIRES))
    if expires > now then
      if next_due == 0 or expires < next_due then
        next_due = expires
      end
      return
    end
    w.loaded[field] = w.loaded[field] or value
    local id = string.sub(field, 3)
    local hold = read_hold(w, id)
    hold.id = id
    due[#due + 1] = hold
  end
  local all = redis.call('HGETALL', w.key)
  for i = 1, #all, 2 do
    local field = all[i]
    if string.sub(field, 1, 2) == 'h:' and all[i + 1] ~= '' and w.changed[field] == nil then
      consider(field, all[i + 1])
    end
  end
  for field, value in pairs(w.changed) do
    if string.sub(field, 1, 2) == 'h:' and value ~= '' then
      consider(field, value)
    end
  end
  table.sort(due, function(a, b)
    if a.expires ~= b.expires then
      return a.expires < b.expires
    end
    return a.id < b.id
  end)
  return due, next_due
end

local function entry_text(w, seq)
  return w.entries[seq] or redis.call('HGET', w.key, 'e:' .. digits(seq))
end

-- Entries after `from`, oldest first, at most `most`.
local function entries_after(w, from, most)
  local fields = {}
  local texts = {}
  for seq = from + 1, math.min(w.seq, from + most) do
    if w.entries[seq] then
      texts[#texts + 1] = w.entries[seq]
    else
      fields[#fields + 1] = 'e:' .. digits(seq)
    end
  end
  if #fields == 0 then
    return texts
  end
  local stored = redis.call('HMGET', w.key, unpack(fields))
  for i = 1, #texts do
    stored[#stored + 1] = texts[i]
  end
  return stored
end

-- Names the fields of acknowledged results and closed holds that can go: in bulk and now and then, because each call costs.
local function prunable(w)
  local last = math.min(w.acked, w.seq - RESULTS_KEPT)
  if last - w.floor < RESULTS_SPARE then
    return nil
  end
  last = math.min(last, w.floor + 4 * RESULTS_SPARE)
  local fields = {}
  for seq = w.floor + 1, last do
    fields[#fields + 1] = 'e:' .. digits(seq)
  end
  local texts = redis.call('HMGET', w.key, unpack(fields))
  for i = 1, #texts do
    if texts[i] then
      fields[#fields + 1] = 'k:' .. field_of(texts[i], 4)
      local kind = field_of(texts[i], 3)
      if CLOSES_HOLD[kind] then
        fields[#fields + 1] = 'h:' .. field_of(texts[i], 11)
      elseif kind == 'refund' and get(w, 'r:' .. field_of(texts[i], 17)) == field_of(texts[i], 18) then
        fields[#fields + 1] = 'r:' .. field_of(texts[i], 17)
      end
      if (CLOSES_HOLD[kind] or kind == 'refund') and field_of(texts[i], 16) ~= '0' then
        local known = get(w, 'x:' .. field_of(texts[i], 11))
        if known and string.match(known, '%S+$') == field_of(texts[i], 16) then
          fields[#fields + 1] = 'x:' .. field_of(texts[i], 11)
        end
      end
    end
  end
  w.floor = last
  return fields
end

-- Writes what changed. `wanted` is when somebody should look at the wallet; the agenda is only touched when that is earlier than
-- what it has already, and only left by those who work through it.
local function write_wallet(w, agenda_key, name, wanted)
  if w.due > 0 and w.due < wanted then
    wanted = w.due
  end
  if w.agenda == 0 or wanted < w.agenda then
    w.agenda = wanted
    redis.call('ZADD', agenda_key, digits(wanted), name)
  elseif w.clock - w.agenda > OVERLOOKED_MS then
    w.agenda = wanted
    redis.call('ZADD', agenda_key, 'NX', digits(wanted), name)
  end
  local gone = prunable(w)
  local fields = { 'core', format_core(w) }
  for field, value in pairs(w.changed) do
    fields[#fields + 1] = field
    fields[#fields + 1] = value
  end
  for i = 1, #fields, VALUES_MAX do
    redis.call('HSET', w.key, unpack(fields, i, math.min(#fields, i + VALUES_MAX - 1)))
  end
  if gone then
    redis.call('HDEL', w.key, unpack(gone))
  end
end
