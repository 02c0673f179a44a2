-- The copy of a tenant's flags is a string: 16 digits of the revision, a blank, 16 digits of the moment at which Postgres was last asked
-- whether they are so (ms, by the clock of this server), a line feed, then the flags as JSON. The head has a fixed length, so that a look
-- at it and a new confirmation cost the same however many flags there are.

local HEAD_BYTES = 34

local function clock()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

local function head(revision, confirmed)
  return string.format('%s %016.0f\n', revision, math.max(0, confirmed))
end

-- Nil: this is none.
local function read_head(text)
  local revision, confirmed = string.match(text, '^(%d+) (%d+)\n$')
  if revision and #revision == 16 and #confirmed == 16 then
    return revision, tonumber(confirmed)
  end
end
