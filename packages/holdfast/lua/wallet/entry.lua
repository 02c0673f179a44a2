-- Entries: what happened to a wallet, as text of 25 lines (see src/machine/entry.ts for the drawing), linked by SHA-1.

-- Only '%.0f' is exact up to 2^53 on every server: '..' and tostring lose digits, '%d' stops at 2^31 on 32 bits.
local function digits(n)
  return string.format('%.0f', n)
end

-- Makes the text of an entry from its 21 hashed fields (strings) and what is not hashed. Returns text and hash.
local function seal(fields, prev, due, since)
  local hashed = { #prev, prev }
  for i = 1, 21 do
    local field = fields[i]
    hashed[2 * i + 1] = #field
    hashed[2 * i + 2] = field
  end
  local hash = redis.sha1hex(table.concat(hashed, ':'))
  fields[22] = prev
  fields[23] = hash
  fields[24] = digits(due)
  fields[25] = digits(since)
  return table.concat(fields, '\n'), hash
end

-- Field n of an entry's text.
local function field_of(text, n)
  local from = 1
  for _ = 2, n do
    from = string.find(text, '\n', from, true) + 1
  end
  local to = string.find(text, '\n', from, true)
  return string.sub(text, from, to and to - 1 or -1)
end
