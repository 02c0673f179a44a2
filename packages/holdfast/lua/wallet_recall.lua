-- All that Redis still knows of a wallet: its core, and every entry that it remembers, pending or not. For an operator, when the journal has
-- lost entries: what it says here can be compared with it.
--
-- KEYS  1 the shard's agenda   2 the wallet
-- ARGV  1 name on the agenda
-- Returns { core, '1' if the wallet is on the agenda, entry, '1' if it was acknowledged from memory, … } oldest first, up to one that is missing
--         an empty core: nothing that can be read
-- @keys 2
-- @resend safe
-- @include wallet/entry
-- @include wallet/state
-- @include wallet/recent

local listed = redis.call('ZSCORE', KEYS[1], ARGV[1]) and '1' or '0'
local w, core = read_core(KEYS[2])
if not w then
  return { '', listed }
end
track(w, KEYS[2], {})
local reply = { core, listed }
local from = w.seq - #w.recent / MARK
local entries = entries_after(w, from, w.ring)
for i = 1, #entries do
  if entries[i] then
    reply[#reply + 1] = entries[i]
    reply[#reply + 1] = was_memory(w, from + i) and '1' or '0'
  end
end
return reply
