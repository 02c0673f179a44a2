-- Limits, one or several for a call: all of them let it pass, or nothing is written. For each of them a call has a key; and its arguments are
--
--   at          ms since 1970, or empty: by the server's clock
--   terms       `<kind> <max> <span> <rate> <buffer>` of each limit, parted by `;`
--   cost        of each limit
--
--   kind        max        span                 rate
--   bucket      capacity   parts of a token     parts that come back in a ms
--   fixed       limit      length in ms         -
--   sliding     limit      length in ms         -
--   log         limit      length in ms         -
--
-- `buffer` is for how many ms a key outlives its use. The answer has three numbers for each limit: what is used of it, in how many ms the
-- same cost would pass (0: it did, or would now), and in how many ms nothing of it is used any more, if nobody else comes.
--
-- A script hands in the kinds that it knows. Each reads a limit, says how much of it is used and for how long, takes from it and gives back
-- to it; and only `write` writes, after all limits of a call were read and changed: whatever can go wrong has done so by then.

local known_terms = {}

-- Calls that go together mostly have the same, so that each text is read once.
local function terms_of(text, kinds)
  local all = known_terms[text]
  if all then
    return all
  end
  all = {}
  for kind, max, span, rate, buffer in string.gmatch(text, '(%a+) (%d+) (%d+) (%d+) (%d+)') do
    all[#all + 1] = {
      kind = kinds[kind],
      slides = kind == 'sliding',
      max = tonumber(max),
      span = tonumber(span),
      rate = tonumber(rate),
      buffer = tonumber(buffer),
    }
  end
  known_terms[text] = all
  return all
end

-- The limits of a call as they are, and what the call costs in each.
local function read_limits(k, a, kinds)
  local at, all = clock_ms(ARGV[a + 1]), terms_of(ARGV[a + 2], kinds)
  local limits = {}
  for i = 1, #all do
    local terms = all[i]
    local cost = tonumber(ARGV[a + 2 + i])
    local limit = { key = KEYS[k + i], at = at, terms = terms, cost = cost, wait = 0, is_changed = false }
    terms.kind.read(limit)
    limits[i] = limit
  end
  return limits
end

-- Whether all of them let the call pass. What costs nothing passes, also where a limit was lowered below what is used of it.
local function judge(limits)
  local pass = true
  for i = 1, #limits do
    local limit = limits[i]
    if limit.cost > 0 then
      limit.wait = limit.terms.kind.wait(limit, limit.cost)
      pass = pass and limit.wait == 0
    end
  end
  return pass
end

local function write_limits(limits)
  for i = 1, #limits do
    local limit = limits[i]
    if limit.is_changed then
      limit.terms.kind.write(limit)
    end
  end
end

local function answer_of(limits)
  local answer
  for i = 1, #limits do
    local limit = limits[i]
    local kind = limit.terms.kind
    local numbers = string.format('%.0f %.0f %.0f', kind.used(limit), limit.wait, kind.reset(limit))
    answer = answer and answer .. ' ' .. numbers or numbers
  end
  return answer
end

-- As many keys and arguments a call as the others of this batch have.
local function each_call(act)
  local calls = tonumber(ARGV[1])
  return each(#KEYS / calls, (#ARGV - 1) / calls, act)
end

local function consume_each(kinds)
  return each_call(function(k, a)
    local limits = read_limits(k, a, kinds)
    if judge(limits) then
      for i = 1, #limits do
        local limit = limits[i]
        if limit.cost > 0 then
          limit.terms.kind.take(limit, limit.cost)
          limit.is_changed = true
        end
      end
      write_limits(limits)
    end
    return answer_of(limits)
  end)
end

local function peek_each(kinds)
  return each_call(function(k, a)
    local limits = read_limits(k, a, kinds)
    judge(limits)
    return answer_of(limits)
  end)
end

-- Where nothing is used nothing is given back, and no key is made.
local function refund_each(kinds)
  return each_call(function(k, a)
    local limits = read_limits(k, a, kinds)
    for i = 1, #limits do
      local limit = limits[i]
      local kind = limit.terms.kind
      if limit.cost > 0 and kind.used(limit) > 0 then
        kind.give_back(limit, limit.cost)
        limit.is_changed = true
      end
    end
    write_limits(limits)
    return answer_of(limits)
  end)
end
