-- Tokens that grow from one holder of a lock to the next, kept beside it. A token is one more than the last, or the clock in microseconds
-- if that is further: so they go on where the counter was lost, unless the clock is behind as well. The counter goes by itself, a while
-- after the clock has passed its token: then the clock alone gives a larger one, whatever it did in between.

-- For how long a token is remembered after the clock has passed it, ms: for a replica whose clock is behind.
local TOKEN_KEPT_MS = 24 * 60 * 60 * 1000

local clock_us, clock_digits, clock_end

-- The clock stands still within a call, so it is read once, and what most tokens of a call are is put into digits once: that takes longer
-- than a command does.
local function read_clock()
  local time = redis.call('TIME')
  clock_us = tonumber(time[1]) * 1000000 + tonumber(time[2])
  clock_digits = digits(clock_us)
  clock_end = digits(math.floor(clock_us / 1000) + TOKEN_KEPT_MS)
end

local function keep_token(key, token)
  redis.call('SET', key, digits(token), 'PXAT', digits(math.floor(token / 1000) + TOKEN_KEPT_MS))
end

-- Returns the next token in digits.
local function draw_token(key, last)
  if not clock_us then
    read_clock()
  end
  if last < clock_us then
    redis.call('SET', key, clock_digits, 'PXAT', clock_end)
    return clock_digits
  end
  keep_token(key, last + 1)
  return digits(last + 1)
end
