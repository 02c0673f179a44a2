-- Counts of windows that lie side by side: of the one that is, and of the one before it. Under the key stands `<begins>:<count>:<before>`.
--
--          before = 8                count = 3
--   |-----------------------|-------^---------------|        sliding: 3 + 8 × (the part of the window that is still to come, 2/3)
--                         begins    at                       fixed:   3
--
-- A clock that goes back behind `begins` stands still there: a window that is past gets nothing any more.

local WINDOWS = {}

-- ceil(count * rest / span), exact though the product may pass 2^53: where windows are longer than sqrt(2^53) ms the caller sees to it that
-- count * span does not.
local function weigh(count, rest, span)
  local whole = math.floor(count / span)
  return whole * rest + math.ceil((count - whole * span) * rest / span)
end

-- The largest rest of a window for which `count` weighs no more than `room`, which is less than `count`. The quotient is rounded, so it may
-- be one too many.
local function rest_for(room, count, span)
  local rest = math.floor(room / count * span) + 1
  while weigh(count, rest, span) > room do
    rest = rest - 1
  end
  return rest
end

function WINDOWS.read(limit)
  local at, span = limit.at, limit.terms.span
  local begins, now, count, before = at - at % span, at, 0, 0
  local value = redis.call('GET', limit.key)
  if value then
    local begun, count_then, before_then = three_counts(value)
    if begun % span ~= 0 then
      damaged()
    end
    if begun >= begins then
      begins, now, count, before = begun, math.max(at, begun), count_then, before_then
    elseif begun + span == begins then
      before = count_then
    end
  end
  limit.begins, limit.now, limit.count, limit.before = begins, now, count, before
end

-- Of the window that is, in ms.
local function rest_of(limit)
  return limit.begins + limit.terms.span - limit.now
end

function WINDOWS.used(limit)
  if not limit.terms.slides then
    return limit.count
  end
  return limit.count + weigh(limit.before, rest_of(limit), limit.terms.span)
end

function WINDOWS.wait(limit, cost)
  local room, span = limit.terms.max - cost, limit.terms.span
  if WINDOWS.used(limit) <= room then
    return 0
  end
  local ends_in = limit.begins + span - limit.at
  if not limit.terms.slides then
    return ends_in
  end
  if limit.count <= room then
    return ends_in - rest_for(room - limit.count, limit.before, span)
  end
  -- Not in this window any more: in the next one, where this one is the one before.
  return ends_in + span - rest_for(room, limit.count, span)
end

function WINDOWS.reset(limit)
  local span = limit.terms.span
  local ends_in = limit.begins + span - limit.at
  if not limit.terms.slides then
    return limit.count > 0 and ends_in or 0
  end
  if limit.count > 0 then
    return ends_in + span
  end
  return limit.before > 0 and ends_in or 0
end

function WINDOWS.take(limit, cost)
  limit.count = limit.count + cost
end

-- The newest first.
function WINDOWS.give_back(limit, cost)
  local of_count = math.min(cost, limit.count)
  limit.count = limit.count - of_count
  limit.before = math.max(0, limit.before - (cost - of_count))
end

function WINDOWS.write(limit)
  local terms = limit.terms
  local lives = limit.begins + terms.span - limit.at + (terms.slides and terms.span or 0) + terms.buffer
  local value = string.format('%.0f:%.0f:%.0f', limit.begins, limit.count, limit.before)
  redis.call('SET', limit.key, value, 'PX', digits(lives))
end
