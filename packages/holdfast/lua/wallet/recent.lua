-- The last entries of a wallet: what is pending (newer than `acked`: Postgres may not have it), and before that the results with which
-- repeated keys are answered.
--
-- They stand in a ring: entry `seq` in the field `e:<seq % ring>`. The ring is made twice as large when all but one in it are pending; it
-- never shrinks in the life of a state. `recent` in the core has a mark for every entry in the ring, oldest first: four bytes that the
-- caller made of its key, and whether it was acknowledged from memory. It says where a key may be found; the entry has the last word.
--
-- Every byte of every string that is made here costs (the server's Lua hashes all of it, 1.3 ns each): so the marks are short, and those
-- of this call (`fresh`) join the others once, when the core is written.

local RING = 16
-- Of an entry for which nobody asks by its key.
local NO_MARK = '\0\0\0\0'

local function entry_field(w, seq)
  return 'e:' .. digits(seq % w.ring)
end

local function entry_bytes(w, seq)
  return w.entries and w.entries[seq] or redis.call('HGET', w.key, entry_field(w, seq))
end

local function mark_at(w, seq)
  local last = #w.recent - (w.before - seq) * MARK
  return string.sub(w.recent, last - MARK + 1, last - 1)
end

local function was_memory(w, seq)
  local last = #w.recent - (w.before - seq) * MARK
  return string.sub(w.recent, last, last) == 'm'
end

-- The oldest pending entry that was acknowledged from memory; nil: there is none. All that are pending have their marks: looked for are those
-- that are there, whatever a damaged core says of how many there should be.
local function first_from_memory(w)
  for seq = math.max(w.acked, w.before - math.floor(#w.recent / MARK)) + 1, w.before do
    if was_memory(w, seq) then
      return seq
    end
  end
  return nil
end

-- In parts, as they are written. There is seldom more than one.
local function read_fields(key, fields)
  local values = nil
  for i = 1, #fields, VALUES_MAX do
    local part = redis.call('HMGET', key, unpack(fields, i, math.min(#fields, i + VALUES_MAX - 1)))
    for j = 1, values and #part or 0 do
      values[i + j - 1] = part[j]
    end
    values = values or part
  end
  return values
end

-- Entries after `from`, oldest first, at most `most`; false for one that is missing.
local function entries_after(w, from, most)
  if w.seq == from + 1 and w.entries then
    return { w.entries[w.seq] }
  end
  local last = math.min(w.seq, from + most)
  local entries = {}
  local fields = {}
  for seq = from + 1, last do
    local bytes = w.entries and w.entries[seq]
    if not bytes then
      fields[#fields + 1] = entry_field(w, seq)
    end
    entries[seq - from] = bytes
  end
  if #fields == 0 then
    return entries
  end
  local stored = read_fields(w.key, fields)
  local next_stored = 1
  for i = 1, last - from do
    if not entries[i] then
      entries[i] = stored[next_stored]
      next_stored = next_stored + 1
    end
  end
  return entries
end

local function remember(w, seq, bytes)
  if w.entries then
    w.entries[seq] = bytes
  else
    w.entries = { [seq] = bytes }
  end
end

-- Half of the entries get another place. They are few, and this comes seldom. What is not in the ring any more has no mark in the larger one.
local function grow(w)
  local from = math.max(w.seq - w.ring, w.before - #w.recent / MARK)
  local entries = entries_after(w, from, w.ring)
  w.recent = string.sub(w.recent, #w.recent - (w.before - from) * MARK + 1)
  w.ring = 2 * w.ring
  for i = 1, #entries do
    -- Somebody has removed it. Written later, outside of the command that stumbles, it would cost others their part of the call.
    if not entries[i] then
      error('an entry is missing')
    end
    remember(w, from + i, entries[i])
    write(w, entry_field(w, from + i), entries[i])
  end
end

-- Keeps the entry that comes next. `acked` and what is newer stay in the ring whatever comes.
local function keep(w, c, bytes)
  if w.seq - w.acked >= w.ring - 1 then
    grow(w)
  end
  w.seq = w.seq + 1
  w.fresh = w.fresh .. c.mark .. (c.memory and 'm' or '-')
  remember(w, w.seq, bytes)
  write(w, entry_field(w, w.seq), bytes)
end

local function find_among(w, marks, last_seq, c)
  local at = string.find(marks, c.mark, 1, true)
  while at do
    local seq = last_seq - (#marks - at + 1) / MARK + 1
    -- What this call has pushed out of the ring is not there any more.
    if (at - 1) % MARK == 0 and seq > w.seq - w.ring then
      local bytes = entry_bytes(w, seq)
      local _, _, entry_key = unpack_bytes(ENTRY_NAMES, bytes)
      if entry_key == c.key then
        return bytes, string.sub(marks, at + MARK - 1, at + MARK - 1) == 'm'
      end
    end
    at = string.find(marks, c.mark, at + 1, true)
  end
  return nil
end

-- The entry that a command's key has made, as far as it is remembered here; and whether it was acknowledged from memory.
local function find_entry(w, c)
  local bytes, memory = find_among(w, w.recent, w.before, c)
  if not bytes and w.fresh ~= '' then
    return find_among(w, w.fresh, w.seq, c)
  end
  return bytes, memory
end
