-- What was refunded in this life of a state, as far as the journal may not have it yet. One field, because refunds are rare:
--
--     last                        seq of the last entry that is noted here
--     r of refunded               refunded so far of an entry
--     x charged refunded hold     of a closed hold
--
-- Once it has grown long and the journal has all of it, it is swept away, and `floor` notes up to which seq: from then on the journal
-- has to be asked, by a read that is not older.

local REFUNDS_MAX = 64

-- The notes as tables, the numbers by seq and by hold; read once a call.
local function refunds_of(w)
  if w.refunds then
    return w.refunds
  end
  local refunds = { last = 0, count = 0, entries = {}, holds = {} }
  w.refunds = refunds
  local text = get(w, 'refunds')
  if not text then
    return refunds
  end
  for line in string.gmatch(text, '[^\n]+') do
    local of, refunded = string.match(line, '^r (%d+) (%d+)$')
    if of then
      refunds.entries[tonumber(of)] = tonumber(refunded)
      refunds.count = refunds.count + 1
    elseif string.sub(line, 1, 1) == 'x' then
      local charged, hold_refunded, hold = string.match(line, '^x (%d+) (%d+) (.+)$')
      refunds.holds[hold] = { charged = tonumber(charged), refunded = tonumber(hold_refunded) }
      refunds.count = refunds.count + 1
    else
      refunds.last = tonumber(line)
    end
  end
  return refunds
end

local function write_refunds(w)
  local refunds = w.refunds
  refunds.last = w.seq
  local lines = { digits(refunds.last) }
  for of, refunded in pairs(refunds.entries) do
    lines[#lines + 1] = 'r ' .. digits(of) .. ' ' .. digits(refunded)
  end
  for hold, known in pairs(refunds.holds) do
    lines[#lines + 1] = 'x ' .. digits(known.charged) .. ' ' .. digits(known.refunded) .. ' ' .. hold
  end
  put(w, 'refunds', table.concat(lines, '\n'))
end

local function note_refund(w, of, refunded)
  local refunds = refunds_of(w)
  if refunds.count >= REFUNDS_MAX and refunds.last <= w.acked then
    w.floor = refunds.last
    refunds.count, refunds.entries, refunds.holds = 0, {}, {}
  end
  refunds.count = refunds.count + (refunds.entries[of] and 0 or 1)
  refunds.entries[of] = refunded
  write_refunds(w)
end

local function note_closed_hold(w, hold, charged, refunded)
  local refunds = refunds_of(w)
  refunds.count = refunds.count + (refunds.holds[hold] and 0 or 1)
  refunds.holds[hold] = { charged = charged, refunded = refunded }
  write_refunds(w)
end
