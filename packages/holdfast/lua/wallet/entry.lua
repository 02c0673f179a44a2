-- Entries: what happened to a wallet, as bytes (see src/machine/entry.ts for the drawing), linked by SHA-1.
--
-- Numbers travel and rest as doubles, eight bytes each: exact up to 2^53, and one call packs all of them. Written out as digits they
-- cost more than everything else the script did.

local pack = struct.pack
local unpack_bytes = struct.unpack

local ENTRY_NAMES = '<c40Bc0Hc0Hc0'
local ENTRY_HASHED = '<c40Bc0Hc0Hc0Hc0Hc0I4c0ddddddddddddddd'
local ENTRY = ENTRY_HASHED .. 'c40dd'
-- Bytes behind what is hashed.
local HASH_AND_BOUNDS = 40 + 2 * 8

-- Only '%.0f' is exact up to 2^53 on every server: '..' and tostring lose digits, '%d' stops at 2^31 on 32 bits.
local function digits(n)
  return string.format('%.0f', n)
end

-- What is asked of an entry later, from its bytes.
local function read_entry(bytes)
  local _, kind, key, hold, counter, params, metadata, epoch, seq, at, amount, _, _, _, _, _, _, _, _, hold_refunded, of, of_refunded, hash =
    unpack_bytes(ENTRY, bytes)
  return {
    kind = kind, key = key, hold = hold, counter = counter, params = params, metadata = metadata, epoch = epoch, seq = seq, at = at,
    amount = amount, hold_refunded = hold_refunded, of = of, of_refunded = of_refunded, hash = hash,
  }
end
