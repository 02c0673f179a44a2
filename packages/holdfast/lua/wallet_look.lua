-- Looks at a wallet without changing it: is its state to be trusted, and what is pending? Whoever finds it untrusted may take the
-- short, advisory lease for loading it, so that others wait instead of raising the epoch at once.
--
-- KEYS  1 the wallet   2 the lease   3 its stock, which only a sale has
-- ARGV  1 least epoch to trust   2 who asks   3 for how long the lease is wanted, ms; 0: not at all
-- Returns { 'trusted' | why not, epoch, 'leased' | 'busy' | '', core, the server's clock, its life, last, entry, … } with the last entry that is
--         known to be in the journal, empty if it is not remembered, and the entries that are pending, oldest first, and for each whether
--         it was acknowledged from memory: {entry, '1' | '0', …}
-- @keys 3
-- @resend safe
-- @include wallet/server
-- @include wallet/entry
-- @include wallet/state
-- @include wallet/recent

local PENDING_MAX = 4096

local life = incarnation()
local w, core = read_core(KEYS[1])
local why = 'trusted'
if not w then
  why = 'missing'
elseif w.life ~= life then
  why = 'incarnation'
elseif w.epoch < tonumber(ARGV[1]) then
  why = 'epoch'
elseif w.has_stock and not open_stock(w, KEYS[3], {}) then
  why = 'stock'
end

local function take_lease()
  if redis.call('SET', KEYS[2], ARGV[2], 'NX', 'PX', ARGV[3]) then
    return true
  end
  local holder = redis.pcall('GET', KEYS[2])
  if type(holder) == 'string' then
    return holder == ARGV[2]
  end
  -- Something else stands in its place, which would keep the wallet from ever being loaded.
  redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
  return true
end

local lease = ''
if why ~= 'trusted' and ARGV[3] ~= '0' then
  lease = 'busy'
  if take_lease() then
    lease = 'leased'
  end
end

local reply = { why, digits(w and w.epoch or 0), lease, w and core or '', digits(server_clock()), life, '' }
if not w then
  return reply
end
track(w, KEYS[1], {})
if w.seq - #w.recent / MARK < w.acked then
  reply[7] = entry_bytes(w, w.acked) or ''
end
local entries = entries_after(w, w.acked, PENDING_MAX)
for i = 1, #entries do
  if not entries[i] then
    break
  end
  reply[#reply + 1] = entries[i]
  reply[#reply + 1] = was_memory(w, w.acked + i) and '1' or '0'
end
return reply
