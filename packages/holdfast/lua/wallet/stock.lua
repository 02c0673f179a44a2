-- The stock of a sale: what it has beyond the numbers of a wallet, in a hash of its own beside the wallet's, so that looking for due holds
-- does not read all items (src/machine/stock.ts says what it means).
--
--     epoch        that of the wallet: with another one, or none, this is of another life and the wallet is not to be trusted either
--     k:<key>      there was a checkout under this key: who asks with one that is not here has had no answer yet
--     until        when the sale ends, once somebody has checked out
--     i:<item>     how many of it are taken
--     u:<buyer>    how many it has taken, and the hold of its running checkout
--     c:<hold>     an open checkout: reserve|note, its buyer, its lines
--
-- Whenever nothing is pending both keys have an end: what is gone is loaded again by who needs it, so that nobody has to be there to clear
-- up. What is pending may be nowhere else, and has none.

-- So long after the end of a sale its keys stay, and so long at least where somebody comes later than that.
local AFTER_END_MS = 3600000
local STAY_MIN_MS = 60000

-- Who has a checkout stands in it, so that can be asked for only now: all of a batch at once, a call to each would cost 2 µs.
local function load_buyers(key, loaded, values, fields)
  local buyers = {}
  for i = 1, #fields - 1 do
    if values[i] and string.sub(fields[i], 1, 2) == 'c:' then
      buyers[#buyers + 1] = 'u:' .. string.match(values[i], '^%a+ (%S+)')
    end
  end
  if #buyers == 0 then
    return
  end
  local found = redis.call('HMGET', key, unpack(buyers))
  for i = 1, #buyers do
    loaded[buyers[i]] = found[i]
  end
end

-- Gets the stock ready for work, with the fields that the batch will ask for. False: it is not of the wallet's life.
local function open_stock(w, key, fields)
  fields[#fields + 1] = 'until'
  fields[#fields + 1] = 'epoch'
  local values = redis.pcall('HMGET', key, unpack(fields))
  if values[#fields] ~= digits(w.epoch) then
    return false
  end
  local loaded = {}
  for i = 1, #fields - 1 do
    loaded[fields[i]] = values[i]
  end
  w.stock = { key = key, loaded = loaded, changed = {} }
  load_buyers(key, loaded, values, fields)
  return true
end

local function stock_get(w, field)
  local loaded = w.stock.loaded
  local value = loaded[field]
  if value == nil then
    value = redis.call('HGET', w.stock.key, field)
    loaded[field] = value
  end
  return value
end

-- False: it is not kept any more.
local function stock_put(w, field, value)
  w.stock.loaded[field] = value
  w.stock.changed[field] = true
end

local function write_stock(w)
  local written, gone = {}, {}
  for field in pairs(w.stock.changed) do
    local value = w.stock.loaded[field]
    if value then
      written[#written + 1] = field
      written[#written + 1] = value
    else
      gone[#gone + 1] = field
    end
  end
  in_parts('HSET', w.stock.key, written, #written)
  in_parts('HDEL', w.stock.key, gone, #gone)
end

-- Gives both keys their end, or takes it from them. Who has closed the sale has ended it with the last entry; where nobody has checked out
-- yet its end is not known here, and the last entry stands for it.
local function end_stock(w)
  if not w.ending then
    redis.call('PERSIST', w.key)
    redis.call('PERSIST', w.stock.key)
    return
  end
  local till = stock_get(w, 'until')
  local over = till and w.status ~= 'frozen' and tonumber(till) or w.at
  local stay = digits(math.max(over + AFTER_END_MS - w.clock, STAY_MIN_MS))
  redis.call('PEXPIRE', w.key, stay)
  redis.call('PEXPIRE', w.stock.key, stay)
end

local function read_lines(words, from)
  local lines = {}
  for i = from, #words do
    local item, quantity, share = string.match(words[i], '^(%d+):(%d+)/(%d+)$')
    lines[#lines + 1] = { item = item, quantity = tonumber(quantity), share = tonumber(share) }
  end
  return lines
end

local function words_of(text)
  local words = {}
  for word in string.gmatch(text, '%S+') do
    words[#words + 1] = word
  end
  return words
end

-- What a command asks for, in the words of its params.
local function read_order(c)
  if not c.order then
    local words = words_of(c.params)
    if words[1] == 'checkout' then
      c.order = {
        mode = words[2], ttl = tonumber(words[3]), from = tonumber(words[4]), till = tonumber(words[5]), per_buyer = tonumber(words[6]),
        buyer = words[7], lines = read_lines(words, 8),
      }
    elseif words[1] == 'purchase' then
      -- Paid for out of a wallet: which, with what, how much is held, and then a price for each line.
      c.order = { all = words[2] == 'all', per_buyer = tonumber(words[3]), held = tonumber(words[6]), prices = {}, priced = #words - 6 }
      for i = 7, #words do
        local item, price = string.match(words[i], '^(%d+):(%d+)$')
        c.order.prices[item] = tonumber(price)
      end
    else
      c.order = { total = tonumber(words[2]), lines = read_lines(words, 3) }
    end
  end
  return c.order
end

-- The fields that a command will ask for.
local function stock_fields(c, fields)
  if c.kind == 'checkout' or c.kind == 'give' or c.kind == 'take' then
    local order = read_order(c)
    if order.buyer then
      fields[#fields + 1] = 'k:' .. c.key
      fields[#fields + 1] = 'u:' .. order.buyer
    end
    for i = 1, #order.lines do
      fields[#fields + 1] = 'i:' .. order.lines[i].item
    end
  elseif c.hold ~= '' then
    fields[#fields + 1] = 'c:' .. c.hold
  end
end

local function total(lines)
  local sum = 0
  for i = 1, #lines do
    sum = sum + lines[i].quantity
  end
  return sum
end

-- What an entry says of lines, in its metadata.
local function lines_text(...)
  local words = {}
  for _, lines in ipairs({ ... }) do
    for i = 1, #lines do
      words[#words + 1] = '[' .. lines[i].item .. ',' .. digits(lines[i].quantity) .. ']'
    end
  end
  return '[' .. table.concat(words, ',') .. ']'
end

local function taken_of(w, item)
  return tonumber(stock_get(w, 'i:' .. item) or '0')
end

local function left_of(w, line)
  return line.share - taken_of(w, line.item)
end

local function add_taken(w, lines, sign)
  for i = 1, #lines do
    local taken = taken_of(w, lines[i].item) + sign * lines[i].quantity
    stock_put(w, 'i:' .. lines[i].item, taken ~= 0 and digits(taken))
  end
end

local function read_buyer(w, id)
  local value = stock_get(w, 'u:' .. id)
  if not value then
    return 0, ''
  end
  local taken, running = string.match(value, '^(%d+) (.*)$')
  return tonumber(taken), running
end

local function write_buyer(w, id, taken, running)
  stock_put(w, 'u:' .. id, (taken > 0 or running ~= '') and digits(taken) .. ' ' .. running)
end

local function read_checkout(w, hold)
  local value = stock_get(w, 'c:' .. hold)
  if not value then
    return nil
  end
  local words = words_of(value)
  return { mode = words[1], buyer = words[2], lines = read_lines(words, 3) }
end

local function write_checkout(w, hold, checkout)
  local words = { checkout.mode, checkout.buyer }
  for i = 1, #checkout.lines do
    local line = checkout.lines[i]
    words[#words + 1] = line.item .. ':' .. digits(line.quantity) .. '/' .. digits(line.share)
  end
  stock_put(w, 'c:' .. hold, table.concat(words, ' '))
end

-- Takes an entry into the stock: what `file` does to the wallet, here for what lies beside it.
local function apply_stock(w, kind, c, hold, sold)
  local word = string.match(c.params, '^%a+')
  if word == 'checkout' then
    local order = read_order(c)
    -- A new one is not looked for: that would be a call to Redis.
    local checkout = kind == 'extend' and read_checkout(w, hold) or { mode = order.mode, buyer = order.buyer, lines = {} }
    for i = 1, #order.lines do
      checkout.lines[#checkout.lines + 1] = order.lines[i]
    end
    write_checkout(w, hold, checkout)
    local taken = read_buyer(w, order.buyer)
    if order.mode == 'reserve' then
      add_taken(w, order.lines, 1)
      taken = taken + total(order.lines)
    end
    write_buyer(w, order.buyer, taken, hold)
    stock_put(w, 'k:' .. c.key, '')
    if stock_get(w, 'until') ~= digits(order.till) then
      stock_put(w, 'until', digits(order.till))
    end
    return
  end
  if word == 'give' or word == 'take' then
    add_taken(w, read_order(c).lines, word == 'give' and 1 or -1)
    return
  end
  local checkout = hold ~= '' and read_checkout(w, hold)
  if not checkout then
    return
  end
  local before = checkout.mode == 'reserve' and checkout.lines or {}
  local after = kind == 'settle' and (sold or checkout.lines) or {}
  -- What was set aside and is bought is taken as it was: no item is read, and none is written.
  if before ~= after then
    add_taken(w, before, -1)
    add_taken(w, after, 1)
  end
  local taken = read_buyer(w, checkout.buyer)
  write_buyer(w, checkout.buyer, taken - total(before) + total(after), '')
  stock_put(w, 'c:' .. hold, false)
end
