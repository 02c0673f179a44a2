-- The state of a wallet in Redis: one hash, everything in it.
--
--     core        its numbers, whose life it is of, the head of its chain, and the marks of its last entries (wallet/recent)
--     e:<n>       its last entries, in a ring (wallet/recent)
--     h:<hold>    an open hold: amount captured left expiresAt refunded
--     refunds     what was refunded in this life of the state (wallet/refunds)
--
-- A sale has its stock beside it, in a second hash (wallet/stock).
--
-- One HMGET reads what a batch needs of a wallet, one HSET writes what it changed. What costs, an operation of a batch of 32 on 1,000
-- wallets: making and removing a field of a large hash 2.6 µs, overwriting one 0.5 µs; so nothing is made that can be overwritten. As
-- text, with a field for each key and each entry and now and then a sweep, the whole script took 38 µs; as it stands here 19 µs (one hot wallet: 25 and 11 µs).

-- version status traits | epoch seq at available reserved limit due since open acked floor agenda clock ring | incarnation head recent
local CORE = '<BBBddddddddddddddc32c40c0'
local CORE_NUMBERS = '<BBBddddddddddddddc32c40'
local CORE_BYTES = struct.size('<BBBdddddddddddddd') + 32 + 40
local CORE_VERSION = 3
-- Only its notes of refunds are others (wallet/refunds).
local CORE_VERSION_BEFORE = 2
-- What no life of a server is called.
local NO_LIFE = string.rep('-', 32)
-- Bytes of `recent` for each entry.
local MARK = 5
-- Traits: something was acknowledged from memory; there is stock beside it, and both keys have an end (wallet/stock).
local MEMORY_USED, STOCK, ENDING = 1, 2, 4
local STATUSES = { 'active', 'frozen', 'closed' }
local STATUS_CODES = { active = 1, frozen = 2, closed = 3 }

local CORE_ALONE = { 'core' }

local HOLD = '<ddddd'
-- Where the fourth number of a hold begins.
local HOLD_EXPIRES = 25

local CLOSES_HOLD = { settle = true, release = true, expire = true }

-- A wallet whose time on the agenda was so long ago may not be on it any more: the agenda is a key of its own, and can be lost alone.
local OVERLOOKED_MS = 60000

-- A wallet may be ahead of both clocks by what one of them was believed to be ahead of the other. By so many times that, nobody led it there.
local TIME_AHEAD = 10

-- Lua hands at most some 8,000 values to one call; a wallet that is installed may have more holds than that.
local VALUES_MAX = 4000

-- Above every epoch and seq that there can be. A state that claims a later epoch could never be replaced by a newer one.
local COUNT_MAX = 2 ^ 52
-- No sum of a wallet's numbers comes near it.
local SUM_MAX = 2 ^ 57

-- What is too short, of another version or has numbers that no wallet has is no core: whoever wrote it, the journal knows better. (A loop
-- over such numbers might never end. One sum finds what is no number, and what is far too large: 0.1 µs.)
local function parse_core(bytes)
  if #bytes < CORE_BYTES then
    return nil
  end
  local version, status, traits, epoch, seq, at, available, reserved, limit, due, since, open, acked, floor, agenda, clock, ring, life, head =
    unpack_bytes(CORE_NUMBERS, bytes)
  -- Nobody goes on with what was written before; but what was acknowledged from memory in it is decided again, as after a failover.
  if version == CORE_VERSION_BEFORE then
    version, life = CORE_VERSION, NO_LIFE
  end
  if version ~= CORE_VERSION or not STATUSES[status] then
    return nil
  end
  local sum = epoch + seq + at + available + reserved + limit + due + since + open + acked + floor + agenda + clock + ring
  if not (sum > -SUM_MAX and sum < SUM_MAX and epoch < COUNT_MAX and seq < COUNT_MAX and acked >= 0 and acked <= seq and ring > 0) then
    return nil
  end
  return {
    status = STATUSES[status], memory = traits % 2 == 1, has_stock = traits >= STOCK, ending = traits >= ENDING, epoch = epoch, seq = seq, at = at, available = available, reserved = reserved,
    limit = limit, due = due, since = since, open = open, acked = acked, floor = floor, agenda = agenda, clock = clock, ring = ring,
    life = life, head = head, recent = string.sub(bytes, CORE_BYTES + 1),
  }
end

-- The core as it stands under a key that may be anything; nil: nothing to be read.
local function read_core(key)
  local bytes = redis.pcall('HGET', key, 'core')
  if type(bytes) ~= 'string' then
    return nil, ''
  end
  return parse_core(bytes), bytes
end

local function format_core(w)
  local recent = w.recent
  if w.fresh ~= '' then
    recent = string.sub(recent .. w.fresh, -MARK * w.ring)
  end
  local traits = (w.memory and MEMORY_USED or 0) + (w.has_stock and STOCK or 0) + (w.ending and ENDING or 0)
  return pack(CORE, CORE_VERSION, STATUS_CODES[w.status], traits, w.epoch, w.seq, w.at, w.available, w.reserved, w.limit,
    w.due, w.since, w.open, w.acked, w.floor, w.agenda, w.clock, w.ring, w.life, w.head, recent)
end

-- Gets a wallet ready for work under its key. Tables that are made with room for what usually comes are not made anew when it comes.
local function track(w, key, loaded)
  w.key = key
  w.loaded = loaded                                            -- fields as they are now; false: not there
  w.writes = { 'core', false, false, false, false, false }     -- field, value, field, value, … for HSET
  w.written = 2
  w.gone = false                                               -- fields for HDEL, where they have not come back
  w.before = w.seq
  w.fresh = ''                                                 -- marks of the entries that came since (wallet/recent)
  w.entries = false                                            -- entries that are not in their place in Redis yet, by seq
  return w
end

-- Reads a wallet with the fields that the batch will ask for, of which `core` is the first. Returns the wallet, or nil and why it can't be
-- trusted. A key that somebody has put something else under is as good as missing: one such wallet must not fail the others of its batch.
local function read_wallet(key, fields, life, epoch_min)
  local values = redis.pcall('HMGET', key, unpack(fields))
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
  if #fields == 2 then
    return track(w, key, { [fields[2]] = values[2] })
  end
  local loaded = {}
  for i = 2, #fields do
    loaded[fields[i]] = values[i]
  end
  return track(w, key, loaded)
end

-- The time of a decision: that of the clocks, and never before the last one. A time that somebody has put there would let every hold run
-- out at once, and stay. (Time that the journal knows of is another matter: a clock may have been ahead once.)
local function time_of(w, clock, caller_clock, ahead_max)
  if w.clock > math.max(clock, caller_clock) + TIME_AHEAD * ahead_max and w.clock > w.at then
    error('the wallet is ahead of its time')
  end
  return math.max(math.min(clock, caller_clock + ahead_max), w.clock)
end

local function get(w, field)
  local value = w.loaded[field]
  if value == nil then
    value = redis.call('HGET', w.key, field)
    w.loaded[field] = value
  end
  return value
end

local function write(w, field, value)
  local writes, written = w.writes, w.written
  writes[written + 1] = field
  writes[written + 2] = value
  w.written = written + 2
end

local function put(w, field, value)
  write(w, field, value)
  w.loaded[field] = value
end

local function remove(w, field)
  w.gone = w.gone or {}
  w.gone[#w.gone + 1] = field
  w.loaded[field] = false
end

local function read_hold(w, id)
  local bytes = get(w, 'h:' .. id)
  if not bytes then
    return nil
  end
  local amount, captured, left, expires, refunded = unpack_bytes(HOLD, bytes)
  return { amount = amount, captured = captured, left = left, expires = expires, refunded = refunded }
end

local function format_hold(hold)
  return pack(HOLD, hold.amount, hold.captured, hold.left, hold.expires, hold.refunded)
end

-- @include primitives/order

local function is_earlier(one, other)
  if one.expires ~= other.expires then
    return one.expires < other.expires
  end
  return is_before(one.id, other.id)
end

-- The open holds that are due, earliest first, `most` of them; and when the next of those that are not due is (0: there is none). Reads the
-- whole hash, so it is only called when something may be due; and reads no more of a hold than its expiry, because there may be thousands of
-- others. Nor does it sort all that are due: all checkouts of a sale run out in the same moment.
local function due_holds(w, now, most)
  local due = {}
  local next_due = 0
  local last
  local function cut()
    table.sort(due, is_earlier)
    for i = #due, most + 1, -1 do
      due[i] = nil
    end
    last = due[most]
  end
  local function consider(field, value)
    local expires = unpack_bytes('<d', value, HOLD_EXPIRES)
    if expires > now then
      if next_due == 0 or expires < next_due then
        next_due = expires
      end
      return
    end
    local id = string.sub(field, 3)
    if last and (expires > last.expires or (expires == last.expires and not is_before(id, last.id))) then
      return
    end
    due[#due + 1] = { id = id, expires = expires, field = field, value = value }
    if #due >= 2 * most then
      cut()
    end
  end
  -- What this call has read or changed counts more than what stands in Redis.
  local held = {}
  for field, value in pairs(w.loaded) do
    if value and string.sub(field, 1, 2) == 'h:' then
      held[field] = value
    end
  end
  local all = redis.call('HGETALL', w.key)
  for i = 1, #all, 2 do
    local field = all[i]
    if string.sub(field, 1, 2) == 'h:' and w.loaded[field] == nil then
      held[field] = all[i + 1]
    end
  end
  for field, value in pairs(held) do
    consider(field, value)
  end
  cut()
  local holds = {}
  for i = 1, #due do
    local one = due[i]
    w.loaded[one.field] = one.value
    holds[i] = read_hold(w, one.id)
    holds[i].id = one.id
  end
  return holds, next_due
end

local function in_parts(command, key, values, count)
  for i = 1, count, VALUES_MAX do
    redis.call(command, key, unpack(values, i, math.min(count, i + VALUES_MAX - 1)))
  end
end

-- @include wallet/stock
-- @include wallet/refunds

-- Where something else stands in the agenda's place, which would keep everybody of the shard from being decided, it makes room.
local function enter(agenda_key, ...)
  local reply = redis.pcall('ZADD', agenda_key, ...)
  if type(reply) == 'table' and reply.err then
    -- Whatever else is wrong, such as that there is no room: then nothing is decided, and nothing lost.
    if string.sub(reply.err, 1, 9) == 'WRONGTYPE' then
      redis.call('DEL', agenda_key)
    end
    redis.call('ZADD', agenda_key, ...)
  end
end

-- Writes what changed. `wanted` is when somebody should look at the wallet; the agenda is only touched when that is earlier than
-- what it has already, and only left by those who work through it.
local function write_wallet(w, agenda_key, name, wanted)
  if w.due > 0 and w.due < wanted then
    wanted = w.due
  end
  if w.agenda == 0 or wanted < w.agenda then
    w.agenda = wanted
    enter(agenda_key, digits(wanted), name)
  elseif w.clock - w.agenda > OVERLOOKED_MS then
    w.agenda = wanted
    enter(agenda_key, 'NX', digits(wanted), name)
  end
  local was_ending = w.ending
  w.ending = w.has_stock and w.seq == w.acked
  w.writes[2] = format_core(w)
  if w.refunds and w.refunds.changed then
    write(w, 'refunds', format_refunds(w.refunds))
  end
  in_parts('HSET', w.key, w.writes, w.written)
  if w.stock then
    write_stock(w)
    if w.ending ~= was_ending then
      end_stock(w)
    end
  end
  if w.gone then
    -- A hold may have come back in the same call: under a key that the journal knows and Redis does not any more.
    local gone = {}
    for i = 1, #w.gone do
      if not w.loaded[w.gone[i]] then
        gone[#gone + 1] = w.gone[i]
      end
    end
    in_parts('HDEL', w.key, gone, #gone)
  end
end
