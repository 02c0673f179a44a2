-- Attempts: a log of them, and the cool-down after too many. The arguments of a call are those of otp_attempt.

local function read_attempts(k, a)
  local terms = { max = tonumber(ARGV[a + 2]), span = tonumber(ARGV[a + 3]), buffer = tonumber(ARGV[a + 4]) }
  local limit = { key = KEYS[k + 1], at = clock_ms(ARGV[a + 1]), terms = terms }
  LOG.read(limit)
  return limit, read_cooldown(KEYS[k + 2])
end

local function cooldown_terms(a)
  return {
    length = tonumber(ARGV[a + 5]),
    growth = tonumber(ARGV[a + 6]),
    max = tonumber(ARGV[a + 7]),
    remember = tonumber(ARGV[a + 8]),
  }
end

-- Until both the log and the cool-down let one through.
local function wait_for_attempt(limit, ends)
  return math.max(0, ends - limit.at, LOG.wait(limit, 1))
end

local function attempt_answer(allowed, limit, wait, began)
  return string.format('%.0f %.0f %.0f %.0f', allowed, limit.counted, wait, began)
end
