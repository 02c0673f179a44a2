-- What was refunded in this life of a state, as far as the journal may not have it yet. One field, because refunds are rare:
--
--     r seq of refunded              refunded so far of an entry, and the seq of the entry that said so
--     x seq charged refunded hold    of a closed hold
--
-- Once it has grown long, what the journal has of it is swept away, and `floor` notes up to which seq: from then on the journal has to be
-- asked, by a read that is not older. What is on its way there stays, and under a steady stream of refunds something always is.

local REFUNDS_MAX = 64

-- The notes as tables, by seq and by hold; read once a call.
local function refunds_of(w)
  if w.refunds then
    return w.refunds
  end
  local refunds = { count = 0, entries = {}, holds = {}, swept = false, changed = false }
  w.refunds = refunds
  for line in string.gmatch(get(w, 'refunds') or '', '[^\n]+') do
    local seq, of, refunded = string.match(line, '^r (%d+) (%d+) (%d+)$')
    if seq then
      refunds.entries[tonumber(of)] = { seq = tonumber(seq), refunded = tonumber(refunded) }
    else
      local charged, hold
      seq, charged, refunded, hold = string.match(line, '^x (%d+) (%d+) (%d+) (.+)$')
      refunds.holds[hold] = { seq = tonumber(seq), charged = tonumber(charged), refunded = tonumber(refunded) }
    end
    refunds.count = refunds.count + 1
  end
  return refunds
end

local function sweep(w, notes)
  for name, noted in pairs(notes) do
    if noted.seq <= w.acked then
      notes[name] = nil
      w.refunds.count = w.refunds.count - 1
      w.floor = math.max(w.floor, noted.seq)
    end
  end
end

local function note(w, notes, name, noted)
  local refunds = w.refunds
  noted.seq = w.seq
  refunds.count = refunds.count + (notes[name] and 0 or 1)
  notes[name] = noted
  refunds.changed = true
end

local function note_refund(w, of, refunded)
  local refunds = refunds_of(w)
  -- What is acknowledged stays the same all through a call: once in it is enough.
  if refunds.count >= REFUNDS_MAX and not refunds.swept then
    refunds.swept = true
    sweep(w, refunds.entries)
    sweep(w, refunds.holds)
  end
  note(w, refunds.entries, of, { refunded = refunded })
end

-- Whatever is noted here was refunded before, and so noted there: that is where it is swept.
local function note_closed_hold(w, hold, charged, refunded)
  note(w, refunds_of(w).holds, hold, { charged = charged, refunded = refunded })
end

-- The notes as text: made once a call, however many refunds there were in it.
local function format_refunds(refunds)
  local lines = {}
  for of, noted in pairs(refunds.entries) do
    lines[#lines + 1] = 'r ' .. digits(noted.seq) .. ' ' .. digits(of) .. ' ' .. digits(noted.refunded)
  end
  for hold, noted in pairs(refunds.holds) do
    lines[#lines + 1] = 'x ' .. digits(noted.seq) .. ' ' .. digits(noted.charged) .. ' ' .. digits(noted.refunded) .. ' ' .. hold
  end
  return table.concat(lines, '\n')
end
