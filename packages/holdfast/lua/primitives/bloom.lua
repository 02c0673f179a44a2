-- The state of a filter is one line: "<current> <next>", the generation that answers and the one that is being built; either may be
-- missing. A chunk is a string: its bits, and after them, in 8 bytes, its mark: how many items were new in it for sure, and the sum of where
-- their first bits are. The sum tells apart what has the same number of other items, as after a failover that lost some.
--
--   hf:app:bloom:v1:acme:sold:{…}          "5f0c…:100000:2:59907:7 "
--   hf:app:bloom:v1:acme:sold:{…}:5f0c…-0  |················ bits, 59907 bytes ················|count|sum|
--   hf:app:bloom:v1:acme:sold:{…}:5f0c…-1  |···················································|count|sum|
--
-- A chunk has its full length from its first moment on. So one that is shorter is not ours, and one that is not there was taken away:
-- its bits must not be read as zeros.

local MARK_BYTES = 8

local states = {}

local function split(text)
  local current, building = string.match(text, '^(%S*) (%S*)$')
  if not current then
    damaged()
  end
  return { text = text, current = current, building = building }
end

-- Read once a call: calls that go together are mostly of one filter.
local function state_of(key)
  local state = states[key]
  if not state then
    state = split(redis.call('GET', key) or ' ')
    states[key] = state
  end
  return state
end

local function has_chunk(key, bytes)
  local length = redis.call('STRLEN', key)
  if length ~= 0 and length ~= bytes + MARK_BYTES then
    damaged()
  end
  return length ~= 0
end
