-- The time that a call is decided at, in ms since 1970: the caller's own, or, where it gives none (an empty argument), the server's, which
-- is one for all processes.

local server_ms

local function clock_ms(given)
  if given ~= '' then
    return tonumber(given)
  end
  if not server_ms then
    local time = redis.call('TIME')
    server_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
  end
  return server_ms
end
