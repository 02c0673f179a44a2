-- What is known of a key, in one string, so that one command writes it with its end:
--
--   1 PROCESSING <token> <request> <attempt> <took over> <lease until> <created> <updated>\n
--   1 COMPLETED <token> <request> <attempt> <took over> 0 <created> <updated>\n<response>
--   1 FAILED_RETRYABLE <token> <request> <attempt> <took over> 0 <created> <updated>\n<reason>
--
-- `1` is the version of this layout. Token and request are 32 hex characters that stand for them; of a request that was not given, -.
-- Times are the server's, in ms. The record outlives the lease: who comes after it still knows which request and which attempt it was.

local RECORD = '^1 ([A-Z_]+) (%x+) (%S+) (%d+) ([01]) (%d+) (%d+) (%d+)\n()'
local STATES = { PROCESSING = true, COMPLETED = true, FAILED_RETRYABLE = true }

local function read_record(key)
  local value = redis.call('GET', key)
  if not value then
    return nil
  end
  local state, token, request, attempt, took_over, lease_until, created, updated, from = string.match(value, RECORD)
  if not STATES[state] or #token ~= 32 or not (request == '-' or (#request == 32 and string.match(request, '^%x+$'))) then
    damaged()
  end
  return {
    state = state,
    token = token,
    request = request,
    attempt = tonumber(attempt),
    took_over = tonumber(took_over),
    lease_until = tonumber(lease_until),
    created = tonumber(created),
    updated = tonumber(updated),
    payload = string.sub(value, from),
  }
end

local function write_record(key, record, keep_ms)
  local line = '1 %s %s %s %.0f %.0f %.0f %.0f %.0f\n'
  local head = string.format(line, record.state, record.token, record.request, record.attempt, record.took_over, record.lease_until, record.created, record.updated)
  redis.call('SET', key, head .. record.payload, 'PX', keep_ms)
end
