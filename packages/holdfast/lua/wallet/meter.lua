-- Metered sessions: what a tick reserves and charges. The twin of src/machine/meter.ts, which has the drawing; whoever changes one
-- changes both. A hold that is passed in is changed.

-- Terms and measure stand in `params` and nowhere else, so that what was acknowledged from memory can be decided again from its entry.
-- Reading them makes a tick 21 µs where a capture is 18, in batches of 32; sent as numbers besides, they would have to agree.
local function read_meter(params)
  local counting, rate, per, stretch, extend_at, heartbeat, measure =
    string.match(params, '^%a+ (%a+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
  return {
    counting = counting, rate = tonumber(rate), per = tonumber(per), stretch = tonumber(stretch), extend_at = tonumber(extend_at),
    heartbeat = tonumber(heartbeat), measure = tonumber(measure),
  }
end

-- What a session may add to its hold. Nothing is an answer too: it goes on with what it has.
local function spendable(w)
  if w.status == 'frozen' then
    return 0
  end
  return math.max(0, math.min(w.available + w.limit, MAX_AMOUNT - w.reserved))
end

-- What the session costs up to now, all of it.
local function total_due(meter, now)
  local rate = meter.rate
  if meter.counting == 'units' then
    return math.min(MAX_AMOUNT, rate * meter.measure)
  end
  local elapsed = math.max(0, now - meter.measure)
  local periods = math.floor(elapsed / meter.per)
  local rest = elapsed - periods * meter.per
  local due = periods * rate
  if meter.counting == 'prorated' then
    due = due + math.floor(rest * rate / meter.per)
  elseif meter.counting == 'started' and (rest > 0 or periods == 0) then
    due = due + rate
  end
  return math.min(MAX_AMOUNT, due)
end

-- What should be reserved in all when so much is used: whole stretches, so many that the used share is not passed.
local function wanted(meter, amount, used)
  local stretch = meter.stretch
  local stretches = math.max(math.ceil(amount / stretch), math.ceil(used * 100 / (stretch * meter.extend_at)))
  return math.min(MAX_AMOUNT, stretch * stretches)
end

local function meter_tick(meter, hold, spare, now)
  local used = math.max(hold.captured, total_due(meter, now))
  local more = math.min(wanted(meter, hold.amount, used) - hold.amount, spare)
  local due = math.min(used - hold.captured, hold.left + more)
  hold.amount = hold.amount + more
  hold.captured = hold.captured + due
  hold.left = hold.left + more - due
  hold.expires = math.max(hold.expires, now + meter.heartbeat)
  return { kind = 'tick', amount = due, available = 0 - more, reserved = more - due, hold = hold }
end

-- Only what is due is added, because nothing comes after it.
local function meter_end(meter, hold, spare, now)
  local used = math.max(hold.captured, total_due(meter, now))
  local left = hold.left
  local more = math.max(0, math.min(used - hold.captured - left, spare, MAX_AMOUNT - hold.amount))
  local due = math.min(used - hold.captured, left + more)
  hold.amount = hold.amount + more
  hold.captured = hold.captured + due
  hold.left = 0
  return { kind = 'settle', amount = hold.captured, available = left - due, reserved = 0 - left, hold = hold }
end
