-- The machine: one bounded step of one wallet. The twin of src/machine/decide.ts; whoever changes one changes both.
-- Works on the table that read_wallet gave and writes nothing: write_wallet does, once a batch.

local MAX_AMOUNT = 9007199254740991
local EXPIRE_MAX = 64

-- @include wallet/meter

local function reject(code, ...)
  return nil, { 'no', code, ... }
end

local function invalid_amount(w)
  return reject('invalid_amount', 'available', digits(w.available), 'reserved', digits(w.reserved))
end

-- The sum is bounded, not only its parts: so what is reserved always fits when it comes back, and no expiry can overflow. So is the
-- change itself: a settle that gives back both what is left and what was captured beyond the hold can pass 2^53, and be rounded.
local function move(w, change)
  local reserved = w.reserved + change.reserved
  local hold = change.hold
  -- So, and not the other way round: what is no number at all is not larger than anything either.
  local fits = change.available <= MAX_AMOUNT and w.available + change.available + reserved <= MAX_AMOUNT and reserved <= MAX_AMOUNT
    and (not hold or (hold.amount <= MAX_AMOUNT and hold.captured <= MAX_AMOUNT))
  if not fits then
    return invalid_amount(w)
  end
  return change
end

local function spend(w, change)
  if w.status == 'frozen' then
    return reject('wallet_frozen')
  end
  if w.available + change.available < -w.limit then
    return reject('insufficient_funds', 'available', digits(w.available))
  end
  return move(w, change)
end

-- Makes the entry, links it to the chain, and takes it into the state.
local function file(w, now, c, change)
  local kind = change.kind
  local hold = change.hold
  local hold_id = change.hold_id or c.hold
  local metadata = change.metadata or c.metadata
  if w.stock then
    apply_stock(w, kind, c, hold_id, change.sold)
  end
  local seq = w.seq + 1
  local open_after = w.open
  if kind == 'hold' then
    open_after = open_after + 1
    if w.due == 0 or hold.expires < w.due then
      w.due = hold.expires
    end
  elseif CLOSES_HOLD[kind] then
    open_after = open_after - 1
  elseif kind == 'close' then
    -- A closed wallet has no holds: left as it is, the bound would bring every sweeper to it for ever, for nothing.
    w.due = 0
  end
  if open_after == 0 then
    w.since = 0
  elseif w.open == 0 then
    w.since = seq
  end
  w.open = open_after
  w.available = w.available + change.available
  w.reserved = w.reserved + change.reserved
  local hashed = pack(ENTRY_HASHED, w.head, #kind, kind, #c.key, c.key, #hold_id, hold_id, #c.counter, c.counter, #c.params, c.params,
    #metadata, metadata, w.epoch, seq, now, change.amount, change.available, change.reserved, w.available, w.reserved,
    hold and hold.amount or 0, hold and hold.captured or 0, hold and hold.left or 0, hold and hold.expires or 0,
    hold and hold.refunded or 0, c.of, change.of_refunded or 0)
  local hash = redis.sha1hex(hashed)
  keep(w, c, hashed .. hash .. pack('<dd', w.due, w.since))
  w.head = hash
  w.at = now
  if kind == 'limit' then
    w.limit = change.amount
  elseif kind == 'freeze' then
    w.status = 'frozen'
  elseif kind == 'unfreeze' then
    w.status = 'active'
  elseif kind == 'close' then
    w.status = 'closed'
  elseif kind == 'refund' then
    note_refund(w, c.of, change.of_refunded)
  end
  if hold_id == '' then
    return
  end
  local stays = not CLOSES_HOLD[kind]
  if kind == 'refund' then
    stays = read_hold(w, hold_id) ~= nil
  end
  if stays then
    put(w, 'h:' .. hold_id, format_hold(hold))
  elseif kind ~= 'refund' then
    remove(w, 'h:' .. hold_id)
  end
  if not stays and hold.refunded > 0 then
    note_closed_hold(w, hold_id, hold.captured, hold.refunded)
  end
end

local function give_back(kind, hold)
  local left = hold.left
  hold.left = 0
  return { kind = kind, amount = left, available = left, reserved = 0 - left, hold = hold }
end

-- Files what is due, earliest first, as entries of their own; then `due` is exact again. False: more than one step may do.
local function expire_due(w, now)
  if w.due == 0 or now < w.due then
    return true
  end
  local expire_max = w.expire_max or EXPIRE_MAX
  local holds, next_due = due_holds(w, now, expire_max + 1)
  for i = 1, #holds do
    local hold = holds[i]
    if i > expire_max then
      w.due = hold.expires
      return false
    end
    w.due = holds[i + 1] and holds[i + 1].expires or next_due
    local c = { key = '~expire:' .. hold.id, mark = NO_MARK, hold = hold.id, of = 0, counter = 'revenue', params = 'expire', metadata = '' }
    file(w, now, c, give_back('expire', hold))
  end
  w.due = next_due
  return true
end

-- Takes `due` out of the hold. A settle also gives the rest back; its `due` is negative where too much was captured before.
local function charge(w, c, hold, due)
  local outside = math.max(0, due - hold.left)
  if outside > 0 and not c.beyond then
    return reject('hold_exceeded', 'left', digits(hold.left))
  end
  local inside = due - outside
  local left = c.kind == 'settle' and 0 or hold.left - inside
  local change = {
    kind = c.kind, amount = c.amount, available = hold.left - inside - left - outside, reserved = left - hold.left, hold = hold,
  }
  hold.captured = hold.captured + due
  hold.left = left
  if outside > 0 then
    return spend(w, change)
  end
  return move(w, change)
end

local function judge_hold(w, c, hold, now)
  if c.kind == 'capture' then
    return charge(w, c, hold, c.amount)
  end
  if c.kind == 'settle' then
    if c.amount < hold.refunded then
      return reject('refund_exceeded', 'left', digits(hold.captured - hold.refunded))
    end
    return charge(w, c, hold, c.amount - hold.captured)
  end
  if c.kind == 'release' then
    return move(w, give_back('release', hold))
  end
  if c.kind == 'tick' then
    return move(w, meter_tick(read_meter(c.params), hold, spendable(w), now))
  end
  if c.kind == 'end' then
    return move(w, meter_end(read_meter(c.params), hold, spendable(w), now))
  end
  if c.ttl > 0 then
    hold.expires = math.max(hold.expires, now + c.ttl)
  end
  hold.amount = hold.amount + c.amount
  hold.left = hold.left + c.amount
  local change = { kind = 'extend', amount = c.amount, available = 0 - c.amount, reserved = c.amount, hold = hold }
  if c.amount == 0 then
    return change
  end
  return spend(w, change)
end

-- Reserves the first stretch of a session, or what there is, if that is the least that is asked for.
local function start_session(w, meter, now)
  if w.status == 'frozen' then
    return reject('wallet_frozen')
  end
  local amount = math.min(meter.stretch, spendable(w))
  if amount < 1 or w.available + w.limit < meter.measure then
    return reject('insufficient_funds', 'available', digits(w.available))
  end
  local hold = { amount = amount, captured = 0, left = amount, expires = now + meter.heartbeat, refunded = 0 }
  return move(w, { kind = 'hold', amount = amount, available = 0 - amount, reserved = amount, hold = hold })
end

-- What the caller read in the journal about the charge counts in the epoch it was read in, if it was read after the last refund that
-- was swept away here: refunds since then stand in the state.
local function facts_for(w, c)
  local facts = c.facts
  if not facts or facts.epoch ~= w.epoch or facts.seq < w.floor then
    return nil
  end
  return facts
end

local function hold_for_refund(w, id, facts)
  local open = read_hold(w, id)
  if open then
    return open
  end
  local known = refunds_of(w).holds[id]
  if known then
    return { amount = 0, captured = known.charged, left = 0, expires = 0, refunded = known.refunded }
  end
  if facts and facts.closed then
    return { amount = 0, captured = facts.charged, left = 0, expires = 0, refunded = facts.hold_refunded }
  end
  return nil
end

-- Never more than the charge; and out of a hold never more than the hold was charged in all.
local function refund(w, c)
  -- Who read no facts did not find the charge in the journal: how much it was is not known, whatever the state knows of its refunds.
  if not c.facts then
    return nil, { 'facts' }
  end
  local facts = facts_for(w, c)
  local known = refunds_of(w).entries[c.of] or facts
  if not known then
    return nil, { 'facts' }
  end
  local left = c.charge - known.refunded
  local hold = nil
  if c.hold ~= '' then
    hold = hold_for_refund(w, c.hold, facts)
    if not hold then
      return nil, { 'facts' }
    end
    left = math.min(left, hold.captured - hold.refunded)
    hold.refunded = hold.refunded + c.amount
  end
  if c.amount > left then
    return reject('refund_exceeded', 'left', digits(math.max(0, left)))
  end
  return move(w, {
    kind = 'refund', amount = c.amount, available = c.amount, reserved = 0, hold = hold, of_refunded = known.refunded + c.amount,
  })
end

-- @include wallet/stock-decide

-- The least that may be asked for, where nothing is too little. A hold may be of nothing: so is paid for what costs nothing.
local AMOUNT_MIN = { credit = 1, debit = 1, capture = 1, refund = 1 }
local TTL_MIN = { hold = 1, extend = 0 }

-- The rules of every command; checks stand in the order of precedence. Returns the change, or nil and the answer.
local function judge(w, c, now)
  local kind = c.kind
  local amount = c.amount
  -- Whoever makes a command has checked its numbers. One that gets by all the same, in whatever way, gets no further than this. (So, and not
  -- the other way round: what is no number at all is not smaller than anything either.)
  if not (amount >= (AMOUNT_MIN[kind] or 0) and amount <= MAX_AMOUNT and amount % 1 == 0) then
    return invalid_amount(w)
  end
  local ttl_min = TTL_MIN[kind]
  if ttl_min and not (c.ttl >= ttl_min and now + c.ttl <= MAX_AMOUNT and c.ttl % 1 == 0) then
    return invalid_amount(w)
  end
  if kind == 'hold' then
    local hold = { amount = amount, captured = 0, left = amount, expires = now + c.ttl, refunded = 0 }
    return spend(w, { kind = kind, amount = amount, available = 0 - amount, reserved = amount, hold = hold })
  elseif kind == 'capture' or kind == 'settle' or kind == 'extend' or kind == 'release' or kind == 'tick' or kind == 'end' then
    local hold = read_hold(w, c.hold)
    if not hold then
      return reject('hold_unknown')
    end
    return judge_hold(w, c, hold, now)
  elseif kind == 'credit' then
    return move(w, { kind = kind, amount = amount, available = amount, reserved = 0 })
  elseif kind == 'debit' then
    return spend(w, { kind = kind, amount = amount, available = 0 - amount, reserved = 0 })
  elseif kind == 'meter' then
    return start_session(w, read_meter(c.params), now)
  elseif kind == 'refund' then
    return refund(w, c)
  elseif kind == 'freeze' or kind == 'unfreeze' or kind == 'void' then
    return { kind = kind, amount = 0, available = 0, reserved = 0 }
  elseif kind == 'limit' then
    if w.available < -amount then
      return reject('insufficient_funds', 'available', digits(w.available))
    end
    return { kind = kind, amount = amount, available = 0, reserved = 0 }
  elseif kind == 'close' then
    if w.available ~= 0 or w.reserved ~= 0 or w.open > 0 then
      return reject('wallet_not_empty', 'available', digits(w.available), 'reserved', digits(w.reserved))
    end
    return { kind = kind, amount = 0, available = 0, reserved = 0 }
  end
  if STOCK_KINDS[kind] then
    return judge_stock(w, c, now)
  end
  error('unknown command ' .. kind)
end

-- Decides one command. Returns nil when it was accepted: then its entry is the last one. Otherwise the answer, in words:
-- {'no', code, fact, value, …} | {'more'} | {'facts'} | {'touched'}.
local function decide(w, c, now)
  if w.status == 'closed' then
    local _, answer = reject('wallet_closed')
    return answer
  end
  if not expire_due(w, now) then
    return { 'more' }
  end
  if c.kind == 'touch' then
    return { 'touched' }
  end
  local change, answer = judge(w, c, now)
  if not change then
    return answer
  end
  file(w, now, c, change)
  return nil
end
