-- The copy of a tenant's flags is a string: their id, a blank, 16 digits of the moment at which Postgres was last asked whether they are so
-- (ms, by the clock of this server), a line feed, then the flags as JSON. The id is 16 digits, the number of the last change, and 6 hex
-- characters, the mark of that change. The head has a fixed length, so that a look at it and a new confirmation cost the same however many
-- flags there are.

local HEAD_BYTES = 40
local ID_BYTES = 22
local DIGITS = 16

local function clock()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

local function head(id, confirmed)
  return string.format('%s %016.0f\n', id, math.max(0, confirmed))
end

-- Digits of one length compare like the numbers that they are.
local function number_of(id)
  return string.sub(id, 1, DIGITS)
end

-- Nil: this is none.
local function read_head(text)
  local id, confirmed = string.match(text, '^(%x+) (%d+)\n$')
  if id and #id == ID_BYTES and #confirmed == DIGITS and string.match(number_of(id), '^%d+$') then
    return id, tonumber(confirmed)
  end
end
