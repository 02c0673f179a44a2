-- Grants and revokes flags of subjects. What is still written by an older layout is moved to this one first.
--
-- KEYS  for each: the flags   by the older layout, if there is one
-- ARGV  1 number of them   then for each: the layout   its bytes   the older layout   its bytes   the moves from it   bytes with the flags to
--       grant   bytes with those to revoke
-- Returns for each {1 if they were moved, else 0; flags before; flags after}, the flags as bytes
-- @keys 1+
-- @batch 64
-- @resend safe
-- @include permissions/bits

local function changed(bits, grant, revoke)
  local bytes = {}
  for i = 1, #bits do
    local kept = bit.band(string.byte(bits, i), bit.bnot(string.byte(revoke, i)))
    bytes[i] = bit.bor(kept, string.byte(grant, i))
  end
  return string.char(unpack(bytes))
end

local keys_each = #KEYS / tonumber(ARGV[1])

return each(keys_each, 7, function(k, a)
  local found, is_older = flags_of(k, a, keys_each == 2)
  local before = found or string.rep('\0', tonumber(ARGV[a + 2]))
  local after = changed(before, ARGV[a + 6], ARGV[a + 7])
  if after ~= before or is_older then
    redis.call('SET', KEYS[k + 1], 'L' .. ARGV[a + 1] .. after)
  end
  if is_older then
    redis.call('UNLINK', KEYS[k + 2])
  end
  return { is_older and 1 or 0, before, after }
end)
