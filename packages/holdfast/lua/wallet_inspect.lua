-- All that Redis says of wallets of one shard, each as of one moment, for who compares it with the journal. Changes nothing.
--
-- KEYS  1… the wallets
-- ARGV  1 how many wallets
-- Returns { server's clock, { why, core, { hold, its bytes, … }, { pending entry, … } }, … }
--         why: trusted · missing · incarnation (of another life of the server) · unreadable (there is something, and it is no wallet)
--         A pending entry that is not there is nil. Of another life nothing is told but the oldest that was acknowledged from memory.
-- @keys 1+
-- @resend safe
-- @batch 64
-- @readonly
-- @include wallet/server
-- @include wallet/entry
-- @include wallet/state
-- @include wallet/recent

local PENDING_MAX = 4096
local life = incarnation()
local reply = { digits(server_clock()) }

local function inspect(key)
  local w, core = read_core(key)
  if not w then
    return { redis.call('EXISTS', key) == 0 and 'missing' or 'unreadable', '', {}, {} }
  end
  track(w, key, {})
  if w.life ~= life then
    local seq = first_from_memory(w)
    return { 'incarnation', core, {}, seq and entries_after(w, seq - 1, 1) or {} }
  end
  local all = redis.call('HGETALL', key)
  local holds = {}
  for i = 1, #all, 2 do
    if string.sub(all[i], 1, 2) == 'h:' then
      holds[#holds + 1] = string.sub(all[i], 3)
      holds[#holds + 1] = all[i + 1]
    end
  end
  return { 'trusted', core, holds, entries_after(w, w.acked, PENDING_MAX) }
end

for i = 1, #KEYS do
  -- Numbers that nobody can work with: of a ring, or of an acknowledged seq, that never was.
  local fine, answer = pcall(inspect, KEYS[i])
  reply[#reply + 1] = fine and answer or { 'unreadable', '', {}, {} }
end
return reply
