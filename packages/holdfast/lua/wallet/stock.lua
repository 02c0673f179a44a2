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

-- Lines in words: item:quantity/share each. Who reads anything else stumbles: the journal knows better. `text`: as entries have it.
local function read_lines(words)
  local lines = {}
  local position = 1
  while position <= #words do
    local item, quantity, share, after = string.match(words, '^(%d+):([1-9]%d*)/(%d+) ?()', position)
    lines[#lines + 1] = {
      item = item, quantity = tonumber(quantity), share = tonumber(share), field = 'i:' .. item, text = '[' .. item .. ',' .. quantity .. ']',
    }
    position = after
  end
  return lines
end

-- Who has a checkout stands in it, so that can be asked for only now: all of a batch at once, a call to each would cost 2 µs.
local function load_buyers(stock, fields)
  local buyers = {}
  for i = 1, #fields - 1 do
    local value = stock.loaded[fields[i]]
    local buyer = value and string.sub(fields[i], 1, 2) == 'c:' and string.match(value, '^%a+ (%S+)')
    -- Where somebody has damaged it, who asks for it stumbles, and nobody else.
    if buyer then
      buyers[#buyers + 1] = 'u:' .. buyer
    end
  end
  if #buyers == 0 then
    return
  end
  local found = redis.call('HMGET', stock.key, unpack(buyers))
  for i = 1, #buyers do
    stock.loaded[buyers[i]] = found[i]
  end
end

-- What is read is taken apart once a call, however often it is asked for: `buyers` and `checkouts` have it so.
local function new_stock(key)
  return { key = key, loaded = {}, changed = {}, buyers = {}, checkouts = {} }
end

-- Gets the stock ready for work, with the fields that the batch will ask for. False: it is not of the wallet's life.
local function open_stock(w, key, fields)
  fields[#fields + 1] = 'until'
  fields[#fields + 1] = 'epoch'
  local values = redis.pcall('HMGET', key, unpack(fields))
  if values[#fields] ~= digits(w.epoch) then
    return false
  end
  local stock = new_stock(key)
  for i = 1, #fields - 1 do
    stock.loaded[fields[i]] = values[i]
  end
  load_buyers(stock, fields)
  w.stock = stock
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

-- What a command asks for, in the words of its params.
local function read_order(c)
  if c.order then
    return c.order
  end
  if c.kind == 'checkout' then
    local mode, ttl, from, till, per_buyer, basket, buyer, lines =
      string.match(c.params, '^checkout (%a+) (%d+) (%d+) (%d+) (%d+) ((%S+) (.+))$')
    c.order = {
      mode = mode, ttl = tonumber(ttl), from = tonumber(from), till = tonumber(till), till_text = till, per_buyer = tonumber(per_buyer),
      -- Buyer and lines, as they stand in a checkout too; and the lines alone.
      basket = basket, words = lines, buyer = buyer, lines = read_lines(lines), key_field = 'k:' .. c.key,
    }
  elseif c.kind == 'purchase' then
    local take, per_buyer, payment = string.match(c.params, '^purchase (%a+) (%d+)(.*)$')
    c.order = { all = take == 'all', per_buyer = tonumber(per_buyer) }
    -- Paid for out of a wallet: which, with what, how much is held, and then a price for each line.
    if payment ~= '' then
      local held, prices = string.match(payment, '^ %S+ %S+ (%d+)(.*)$')
      c.order.held, c.order.prices, c.order.priced = tonumber(held), {}, 0
      for item, price in string.gmatch(prices, ' (%d+):(%d+)') do
        c.order.prices[item] = tonumber(price)
        c.order.priced = c.order.priced + 1
      end
    end
  else
    local sum, lines = string.match(c.params, '^%a+ (%d+) ?(.*)$')
    c.order = { total = tonumber(sum), lines = read_lines(lines) }
  end
  return c.order
end

-- The fields that a command will ask for.
local function stock_fields(c, fields)
  if c.kind == 'checkout' or c.kind == 'give' or c.kind == 'take' then
    local order = read_order(c)
    if order.buyer then
      fields[#fields + 1] = order.key_field
      fields[#fields + 1] = 'u:' .. order.buyer
    end
    for i = 1, #order.lines do
      fields[#fields + 1] = order.lines[i].field
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

-- What an entry says of lines, in its metadata: of these, and of some more.
local function lines_text(lines, more)
  if #lines + (more and #more or 0) == 1 then
    return '[' .. (lines[1] or more[1]).text .. ']'
  end
  local words = {}
  for i = 1, #lines do
    words[i] = lines[i].text
  end
  for i = 1, more and #more or 0 do
    words[#words + 1] = more[i].text
  end
  return '[' .. table.concat(words, ',') .. ']'
end

local function taken_of(w, line)
  return tonumber(stock_get(w, line.field) or '0')
end

local function left_of(w, line)
  return line.share - taken_of(w, line)
end

local function add_taken(w, lines, sign)
  for i = 1, #lines do
    local taken = taken_of(w, lines[i]) + sign * lines[i].quantity
    stock_put(w, lines[i].field, taken ~= 0 and digits(taken))
  end
end

-- How many it has taken, and the hold of its running checkout; '' where it has none.
local function read_buyer(w, id)
  local buyer = w.stock.buyers[id]
  if not buyer then
    buyer = { taken = 0, running = '', field = 'u:' .. id }
    local value = stock_get(w, buyer.field)
    if value then
      local taken, running = string.match(value, '^(%d+) (.*)$')
      buyer.taken, buyer.running = tonumber(taken), running
    end
    w.stock.buyers[id] = buyer
  end
  return buyer
end

local function write_buyer(w, buyer, taken, running)
  buyer.taken, buyer.running = taken, running
  stock_put(w, buyer.field, (taken > 0 or running ~= '') and digits(taken) .. ' ' .. running)
end

local function read_checkout(w, hold)
  local checkout = w.stock.checkouts[hold]
  if not checkout then
    local value = stock_get(w, 'c:' .. hold)
    if not value then
      return nil
    end
    local mode, buyer, lines = string.match(value, '^(%a+) (%S+) (.+)$')
    checkout = { mode = mode, buyer = buyer, words = value, lines = read_lines(lines) }
    w.stock.checkouts[hold] = checkout
  end
  return checkout
end

-- Into a checkout that is there, or a new one.
local function write_checkout(w, hold, order, checkout)
  if not checkout then
    -- Lines of its own: more may come, and the order stays what it is.
    checkout = { mode = order.mode, buyer = order.buyer, words = order.mode .. ' ' .. order.basket, lines = {} }
    w.stock.checkouts[hold] = checkout
  else
    checkout.words = checkout.words .. ' ' .. order.words
  end
  for i = 1, #order.lines do
    checkout.lines[#checkout.lines + 1] = order.lines[i]
  end
  stock_put(w, 'c:' .. hold, checkout.words)
end

local function remove_checkout(w, hold)
  w.stock.checkouts[hold] = nil
  stock_put(w, 'c:' .. hold, false)
end

-- Takes an entry into the stock: what `file` does to the wallet, here for what lies beside it.
local function apply_stock(w, kind, c, hold, sold)
  if c.kind == 'checkout' then
    local order = read_order(c)
    -- A new one is not looked for: that would be a call to Redis.
    write_checkout(w, hold, order, kind == 'extend' and read_checkout(w, hold))
    local buyer = read_buyer(w, order.buyer)
    local taken = buyer.taken
    if order.mode == 'reserve' then
      add_taken(w, order.lines, 1)
      taken = taken + total(order.lines)
    end
    write_buyer(w, buyer, taken, hold)
    stock_put(w, order.key_field, '')
    if stock_get(w, 'until') ~= order.till_text then
      stock_put(w, 'until', order.till_text)
    end
    return
  end
  if c.kind == 'give' or c.kind == 'take' then
    add_taken(w, read_order(c).lines, c.kind == 'give' and 1 or -1)
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
  local buyer = read_buyer(w, checkout.buyer)
  write_buyer(w, buyer, buyer.taken - total(before) + total(after), '')
  remove_checkout(w, hold)
end
