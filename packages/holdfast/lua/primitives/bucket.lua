-- Token buckets, in whole numbers throughout. A token has `span` parts, and `rate` parts come back in a ms:
--
--   10 tokens in 60 s   1 part a ms, 6000 parts a token      3000 tokens in 1 s   3 parts a ms, 1 part a token
--
-- Under the key stands `<debt>:<since>:<span>`: how many parts are missing to a full bucket, and the ms up to which those that came back
-- are taken off. A full bucket is no key at all. A clock that goes back brings nothing back twice: `since` never does. No product passes
-- 2^53: the caller sees to it that a full bucket does not, and a quotient of numbers below that rounds to the right whole number.

local BUCKET = {}

function BUCKET.read(limit)
  local at, terms = limit.at, limit.terms
  local full, debt, since = terms.max * terms.span, 0, at
  local value = redis.call('GET', limit.key)
  if value then
    local span
    debt, since, span = three_counts(value)
    if span == 0 then
      damaged()
    end
    if span ~= terms.span then
      -- Written at another rate: what was taken stays taken, rounded up to whole tokens.
      debt = math.ceil(debt / span) * terms.span
    end
    debt = math.min(debt, full)
    if since < at then
      local is_full = at - since >= math.ceil(debt / terms.rate)
      debt = is_full and 0 or debt - (at - since) * terms.rate
      since = at
    end
  end
  limit.full, limit.debt, limit.since = full, debt, since
end

function BUCKET.wait(limit, cost)
  local lacking = cost * limit.terms.span - (limit.full - limit.debt)
  return lacking <= 0 and 0 or limit.since - limit.at + math.ceil(lacking / limit.terms.rate)
end

function BUCKET.used(limit)
  return math.ceil(limit.debt / limit.terms.span)
end

function BUCKET.reset(limit)
  return limit.debt == 0 and 0 or limit.since - limit.at + math.ceil(limit.debt / limit.terms.rate)
end

function BUCKET.take(limit, cost)
  limit.debt = limit.debt + cost * limit.terms.span
end

function BUCKET.give_back(limit, cost)
  limit.debt = math.max(0, limit.debt - math.min(cost, limit.terms.max) * limit.terms.span)
end

function BUCKET.write(limit)
  local terms = limit.terms
  local lives = limit.since - limit.at + math.ceil(limit.debt / terms.rate) + terms.buffer
  local value = string.format('%.0f:%.0f:%.0f', limit.debt, limit.since, terms.span)
  redis.call('SET', limit.key, value, 'PX', digits(math.max(1, lives)))
end
