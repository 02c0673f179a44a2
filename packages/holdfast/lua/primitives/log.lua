-- Logs of what was let through within the last `span` ms: an entry a call. Each carries the total up to it, so that what lies between two
-- of them is one subtraction, however many they are:
--
--   score      100           250           900
--   member     …003:3        …005:2        …009:4          <total with it, 16 digits>:<its own>
--
-- Calls cost at least 1, so there are never more entries than the limit. Digits are filled up with zeros because entries of the same ms are
-- in the order of their letters. The total begins anew whenever nothing counts any more; 2^53 is far beyond what limits of a log let pass
-- before that. A clock that goes back stands still at the newest entry.

local LOG = {}

local function entry_of(member)
  local total, own = string.match(member, '^(%d+):(%d+)$')
  if not total or #total ~= 16 then
    damaged()
  end
  return count_of(total), count_of(own)
end

function LOG.read(limit)
  local key, at = limit.key, limit.at
  limit.now, limit.newest, limit.total, limit.counted = at, at, 0, 0
  local last = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')
  if not last[1] then
    return
  end
  local total = entry_of(last[1])
  limit.newest = tonumber(last[2])
  limit.now = math.max(at, limit.newest)
  local since = limit.now - limit.terms.span
  local oldest = redis.call('ZRANGEBYSCORE', key, '(' .. digits(since), '+inf', 'LIMIT', 0, 1)
  if oldest[1] then
    local total_then, own = entry_of(oldest[1])
    limit.total, limit.counted = total, total - (total_then - own)
  end
end

function LOG.used(limit)
  return limit.counted
end

-- The place of the first entry whose total is at least this, and the entry. There is one, and since each counts for 1 or more it can't be
-- further behind the oldest than their totals are apart.
local function find_entry(limit, total)
  local key = limit.key
  local from = redis.call('ZCOUNT', key, '-inf', digits(limit.now - limit.terms.span))
  local to = math.min(redis.call('ZCARD', key), from + total - (limit.total - limit.counted)) - 1
  while from < to do
    local middle = math.floor((from + to) / 2)
    local there = entry_of(redis.call('ZRANGE', key, middle, middle)[1])
    if there < total then
      from = middle + 1
    else
      to = middle
    end
  end
  return from, redis.call('ZRANGE', key, from, from, 'WITHSCORES')
end

function LOG.wait(limit, cost)
  local lacking = limit.counted + cost - limit.terms.max
  if lacking <= 0 then
    return 0
  end
  local _, entry = find_entry(limit, limit.total - limit.counted + lacking)
  return tonumber(entry[2]) + limit.terms.span - limit.at
end

function LOG.reset(limit)
  return limit.counted == 0 and 0 or limit.newest + limit.terms.span - limit.at
end

local function member_of(total, own)
  return string.format('%016.0f:%.0f', total, own)
end

function LOG.take(limit, cost)
  limit.total, limit.counted, limit.newest = limit.total + cost, limit.counted + cost, limit.now
  limit.added = member_of(limit.total, cost)
end

-- The newest first. Something is counted.
function LOG.give_back(limit, cost)
  local back = math.min(cost, limit.counted)
  local total = limit.total - back
  local place, entry = find_entry(limit, total + 1)
  local total_then, own = entry_of(entry[1])
  local kept = total - (total_then - own)
  limit.total, limit.counted, limit.gone_from = total, limit.counted - back, place
  if kept > 0 then
    limit.added, limit.gone_from = member_of(total, kept), place + 1
  elseif limit.counted > 0 then
    entry = redis.call('ZRANGE', limit.key, place - 1, place - 1, 'WITHSCORES')
  end
  limit.newest = tonumber(entry[2])
end

-- What comes is written before the rest goes: a log that is empty for a moment would lose its end. Sorted sets can't be given theirs in the
-- command that writes them; nobody sees one without, since a script is one step.
function LOG.write(limit)
  local key, span = limit.key, limit.terms.span
  if limit.added then
    redis.call('ZADD', key, digits(limit.newest), limit.added)
  end
  if limit.gone_from then
    redis.call('ZREMRANGEBYRANK', key, limit.gone_from, -1)
  else
    redis.call('ZREMRANGEBYSCORE', key, '-inf', digits(limit.now - span))
    redis.call('PEXPIRE', key, digits(limit.now - limit.at + span + limit.terms.buffer))
  end
end
